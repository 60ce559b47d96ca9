"""What is written: plan versions, their moves and loads, their rows, and the seal that chains them."""
