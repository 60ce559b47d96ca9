"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const many = data.brokers.length > 60;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const layout = (title, extra) => ({
    title: { text: title, font: { size: 15 } }, height: 320, margin: { l: 55, r: 15, t: 45, b: 50 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("--ink"), size: 12 },
    legend: { orientation: "h", y: 1.12, x: 1, xanchor: "right" }, hovermode: "closest",
    ...extra,
  });
  const axis = (title, extra) => ({ title: { text: title }, gridcolor: colour("--line"), zerolinecolor: colour("--line"), ...extra });
  const options = { responsive: true, displaylogo: false, displayModeBar: false };
  const draw = (id, traces, shape, spoken) => {
    element(id).setAttribute("aria-label", spoken);
    return Plotly.react(id, traces, shape, options);
  };
  // What is not in effect is not drawn as if it were: its side is called "as proposed".
  const sides = data.plan.sides;
  const go = data.plan.effective ? "go" : "would go";
  const labels = data.brokers.map((b) => `broker ${b.id}, rack ${b.rack}, ${b.state}`);
  const proposed = (side) => (side && !data.plan.effective ? { pattern: { shape: "/" } } : {});
  const range = (values) => (values.length ? `${Math.min(...values)} to ${Math.max(...values)}` : "none");

  // A few brokers are bars; many are lines, the fullest first, so that the shape can be seen.
  const perBroker = (name, values, words) => {
    const order = data.brokers.map((_, i) => i);
    if (many) order.sort((a, b) => values[0][b] - values[0][a]);
    const names = ["before", "after"];
    return values.map((counts, side) => ({
      name: words[side], y: order.map((i) => counts[i]), text: order.map((i) => labels[i]),
      x: many ? order.map((_, n) => n + 1) : order.map((i) => String(data.brokers[i].id)),
      hovertemplate: "%{text}: %{y}<extra>" + words[side] + "</extra>", textposition: many ? undefined : "none",
      type: many ? "scatter" : "bar", mode: many ? "lines" : undefined,
      line: many ? { width: 1.5 } : undefined, marker: { color: colour(`--${names[side]}`), ...proposed(side) },
    }));
  };
  const brokerAxis = () => axis(many ? "brokers, the fullest first" : "broker", many ? {} : { type: "category" });

  const drawLoad = () => {
    for (const name of ["replicas", "leaders"]) {
      const values = data[name];
      draw(name, perBroker(name, values, sides),
        layout(name === "replicas" ? "Replicas" : "Preferred leaders", { xaxis: brokerAxis(), yaxis: axis("", { rangemode: "tozero" }), barmode: "group" }),
        `${name} per broker on ${data.brokers.length} brokers: ${range(values[0])} before, ${range(values[1])} ${sides[1]}`);
    }
  };
  // A share is what racks and capacities let a broker carry; within the trigger nothing is done.
  const drawWeights = () => {
    element("weight-section").hidden = !data.loads;
    if (!data.loads) return;
    const { brokers: ids, parts, loads, resources, trigger } = data.loads;
    const names = { disk: "Bytes on disk", bytes_in: "Bytes in a second", bytes_out: "Bytes out a second", cpu: "CPU" };
    const line = (y) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: colour("--mark"), width: 1, dash: "dot" } });
    resources.forEach((name, k) => {
      element(`load-${name}`).hidden = loads[0][k].every((load) => load === 0);
      if (element(`load-${name}`).hidden) return;
      const order = ids.map((_, i) => i);
      if (many) order.sort((a, b) => parts[0][k][b] - parts[0][k][a]);
      const traces = ["before", "after"].map((side, n) => ({
        name: sides[n], y: order.map((i) => parts[n][k][i]), x: many ? order.map((_, place) => place + 1) : order.map((i) => String(ids[i])),
        text: order.map((i) => `broker ${ids[i]}: ${loads[n][k][i].toLocaleString("en")}`), hovertemplate: `%{text}, %{y} %<extra>${sides[n]}</extra>`,
        type: many ? "scatter" : "bar", mode: many ? "lines" : undefined, line: many ? { width: 1.5 } : undefined, marker: { color: colour(`--${side}`), ...proposed(n) }, textposition: many ? undefined : "none",
      }));
      draw(`load-${name}`, traces,
        layout(names[name], { xaxis: brokerAxis(), yaxis: axis("% of the share", { rangemode: "tozero" }), barmode: "group", shapes: [line(100 - trigger), line(100 + trigger)] }),
        `${names[name]} on ${ids.length} brokers, in per cent of their shares: ${range(parts[0][k])} before, ${range(parts[1][k])} ${sides[1]}`);
    });
  };
  const drawRacks = () => {
    const racks = [...new Set(data.brokers.map((b) => b.rack))].sort();
    const sums = data.replicas.map((counts) => racks.map((rack) => data.brokers.reduce((sum, b, i) => sum + (b.rack === rack ? counts[i] : 0), 0)));
    draw("rack-chart", sums.map((y, side) => ({ type: "bar", name: sides[side], x: racks, y, marker: { color: colour(["--before", "--after"][side]), ...proposed(side) } })),
      layout("Replicas per rack", { xaxis: axis("rack", { type: "category" }), yaxis: axis(""), barmode: "group" }),
      `replicas per rack: ${racks.map((rack, i) => `${rack} ${sums[0][i]} before, ${sums[1][i]} ${sides[1]}`).join("; ")}`);
  };
  const drawMatrix = () => {
    const { by, labels: names, counts } = data.matrix;
    element("no-moves").hidden = names.length > 0;
    element("matrix").hidden = names.length === 0;
    if (!names.length) return;
    const total = counts.flat().reduce((a, b) => a + b, 0);
    draw("matrix", [{ type: "heatmap", z: counts, x: names, y: names, colorscale: [[0, colour("--paper")], [1, colour("--after")]], xgap: 1, ygap: 1,
      hovertemplate: `from ${by} %{y} to ${by} %{x}: %{z} replicas<extra></extra>` }],
      layout(`Replicas that ${go} from ${by} to ${by}`, { height: 420, xaxis: axis(`to ${by}`, { type: "category" }), yaxis: axis(`from ${by}`, { type: "category", autorange: "reversed" }) }),
      `${total} replicas ${go} from one broker to another, between ${names.length} ${by}s`);
  };
  const drawWaves = () => {
    element("wave-section").hidden = data.waves.length === 0;
    if (!data.waves.length) return;
    draw("waves", [{ type: "bar", x: data.waves.map((_, i) => i + 1), y: data.waves, marker: { color: colour("--after") } }],
      layout("Partitions per wave", { xaxis: axis("wave", { dtick: data.waves.length > 30 ? undefined : 1 }), yaxis: axis("") }),
      `${data.waves.length} waves with ${range(data.waves)} partitions each`);
  };

  // The history: counts at each version are those of the start and all changes up to it.
  const versions = data.timeline.versions;
  const counts = (index) => {
    const found = new Map(data.timeline.start.map(([b, r, l]) => [b, [r, l]]));
    for (let i = 0; i <= index; i += 1) {
      for (const [b, r, l] of versions[i].changes) {
        const old = found.get(b) || [0, 0];
        found.set(b, [old[0] + r, old[1] + l]);
      }
    }
    return [...found].filter(([, [r]]) => r > 0).sort((a, b) => a[0] - b[0]);
  };
  const drawTimeline = (index) => {
    const xs = versions.map((v) => v.version);
    const words = versions.map((v) => `${v.kind}: ${v.cause}`.slice(0, 120));
    const line = (name, field, tone) => ({ type: "scatter", mode: "lines+markers", name, x: xs, y: versions.map((v) => v[field]), text: words,
      hovertemplate: "version %{x}, %{text}<extra>" + name + " %{y}</extra>", marker: { color: colour(tone), size: 5 }, line: { shape: "hv" } });
    draw("timeline", [line("most replicas", "high", "--after"), line("fewest replicas", "low", "--before")],
      layout("Fullest and emptiest broker", { xaxis: axis("plan version"), yaxis: axis("", { rangemode: "tozero" }),
        shapes: [{ type: "line", x0: xs[index], x1: xs[index], yref: "paper", y0: 0, y1: 1, line: { color: colour("--mark"), width: 2 } }] }),
      `${versions.length} plan versions, ${xs[0]} to ${xs[xs.length - 1]}; use the slider below to go through them`);
  };
  const show = (index) => {
    const v = versions[index];
    const sentence = `Version ${v.version}, ${v.at} UTC, ${v.kind}${v.approval === "not_required" ? "" : ` (${v.approval})`}: ${v.cause}. ${v.moved} replicas ${v.effective ? "moved" : "would move"}.`;
    element("shown").value = String(v.version);
    element("slider").setAttribute("aria-valuetext", sentence);
    element("told").textContent = sentence;
    const there = counts(index);
    const crowd = there.length > 60;
    const line = (name, place, tone) => ({ name, x: crowd ? there.map(([b]) => b) : there.map(([b]) => String(b)), y: there.map(([, c]) => c[place]),
      type: crowd ? "scatter" : "bar", mode: crowd ? "markers" : undefined, marker: { color: colour(tone), size: 4 },
      hovertemplate: "broker %{x}: %{y}<extra>" + name + "</extra>" });
    draw("then", [line("replicas", 0, "--after"), line("leaders", 1, "--before")],
      layout(`After version ${v.version}`, { xaxis: axis("broker", crowd ? {} : { type: "category" }), yaxis: axis("", { rangemode: "tozero" }), barmode: "group" }),
      `after version ${v.version}: ${there.length} brokers hold ${range(there.map(([, c]) => c[0]))} replicas each`);
    drawTimeline(index);
  };

  const fill = (id, header, rows, caption) => {
    const table = element(id);
    table.createCaption().textContent = caption;
    const head = table.createTHead().insertRow();
    for (const name of header) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = name;
      head.append(cell);
    }
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      for (const value of row) line.insertCell().textContent = String(value);
    }
  };
  fill("brokers", ["broker", "rack", "state", "replicas before", sides[1], "leaders before", sides[1]],
    data.brokers.map((b, i) => [b.id, b.rack, b.state, data.replicas[0][i], data.replicas[1][i], data.leaders[0][i], data.leaders[1][i]]),
    "Replicas and preferred leaders per broker");
  const hottest = data.loads && data.loads.hottest;
  fill("moves", ["topic", "partition", ...sides, "reason", ...(hottest ? ["bytes copied", `takes off broker ${hottest.broker}, of its ${hottest.load.toLocaleString("en")} ${hottest.resource}`] : [])],
    data.moves.map((m, i) => [m.topic, m.partition, m.before.join(", ") || "–", m.after.join(", ") || "–", m.reason,
      ...(hottest ? data.loads.moves[i].map((n) => n.toLocaleString("en")) : [])]),
    data.moves.length < data.plan.partitions ? `The first ${data.moves.length} of ${data.plan.partitions} changed partitions` : "All changed partitions");

  const slider = element("slider");
  slider.max = String(versions.length - 1);
  const at = versions.findIndex((v) => v.version === data.plan.version);
  slider.value = String(at < 0 ? versions.length - 1 : at);
  slider.addEventListener("input", () => show(Number(slider.value)));
  const all = () => {
    drawLoad();
    drawWeights();
    drawRacks();
    drawMatrix();
    drawWaves();
    show(Number(slider.value));
    document.body.dataset.ready = "yes";
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  all();
})();
