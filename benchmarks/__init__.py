"""One module a claim; each prints ratios that hold on other machines too."""
