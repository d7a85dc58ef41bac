// SPDX-License-Identifier: Apache-2.0
// Draws each figure of the page from the data beside it.
"use strict";
(() => {
  const UNITS = {
    seconds: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
    bytes: [[1073741824, "GiB"], [1048576, "MiB"], [1024, "KiB"], [1, "B"]],
  };
  const told = (value, unit) => {
    if (value === null || value === undefined) return "";
    const units = UNITS[unit];
    if (!units || value === 0) return String(+value.toPrecision(3));
    const [size, name] = units.find(([s]) => Math.abs(value) >= s * 0.9995) || units[units.length - 1];
    return `${+(value / size).toPrecision(3)} ${name}`;
  };
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const width = (box) => Math.max(280, box.clientWidth);

  const draw = (figure) => {
    const box = figure.querySelector(".chart");
    const { x, y, places, series } = JSON.parse(figure.querySelector("script").textContent);
    const line = style("--line"), fg = style("--fg");
    const axis = (of, extra) => ({ stroke: fg, grid: { stroke: line, width: 1 }, ticks: { stroke: line },
      label: of.log ? `${of.label} (logarithmic)` : of.label, values: (_, all) => all.map((v) => told(v, of.unit)), ...extra });
    const scale = (of) => ({ time: false, ...(of.log ? { distr: 3, log: of.unit === "bytes" ? 2 : 10 } : {}) });
    const data = [places], shown = [{ label: x.label, value: (_, v) => told(v, x.unit) }], bands = [];
    for (const one of series) {
      const stroke = style(`--c${one.colour}`), first = data.length;
      data.push(one.median);
      shown.push({ label: one.name, stroke, width: 2, spanGaps: true, dash: one.dashed ? [6, 4] : undefined, points: { show: true, size: 7 },
        value: (_, v) => told(v, y.unit) });
      if (one.least.some((v, i) => v !== one.greatest[i])) {
        for (const edge of [one.greatest, one.least]) {
          data.push(edge);
          shown.push({ label: "", stroke: "transparent", width: 0, spanGaps: true, points: { show: false }, class: "edge" });
        }
        bands.push({ series: [first + 1, first + 2], fill: `${stroke}33` });
      }
    }
    const options = { width: width(box), height: 340, scales: { x: scale(x), y: { ...scale(y), ...(y.log ? {} : { range: [0, null] }) } },
      axes: [axis(x), axis(y, { size: 80 })], series: shown, bands };
    if (!y.log) options.scales.y.range = (_, low, high) => [Math.min(0, low), high * 1.05 || 1];
    return new uPlot(options, data, box);
  };

  let drawn = [];
  const all = () => {
    drawn.forEach((chart) => chart.destroy());
    drawn = [...document.querySelectorAll("figure")].map(draw);
  };
  all();
  window.addEventListener("resize", () => drawn.forEach((chart) => chart.setSize({ width: width(chart.root.parentElement), height: 340 })));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
})();
