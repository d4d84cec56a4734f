/** The growth figures as one SVG of four panels, by plain code. */
import type { Figure, Figures } from "./figures.ts";
import { numberText } from "./report.ts";
import type { Spread } from "./statistics.ts";
import { spreadOf } from "./statistics.ts";

interface Panel {
	readonly title: string;
	/** Which rows it shows; the first group is the number on its horizontal axis. */
	readonly rows: RegExp;
	/** A prompt costs what its bytes cost: on logarithmic axes that is a straight line. */
	readonly logarithmic: boolean;
}

interface Point extends Spread {
	readonly x: number;
}

const PANELS: readonly Panel[] = [
	{ title: "keys in Postgres", rows: /^([\d,]+) keys? in Postgres/, logarithmic: false },
	{ title: "bytes of prompt", rows: /^prompt of ([\d,]+) bytes/, logarithmic: true },
	{ title: "streams open beside", rows: /^([\d,]+) open streams/, logarithmic: false },
	{ title: "instances on one database", rows: /^([\d,]+) instances? on/, logarithmic: false },
];

const WIDTH = 880;
const HEIGHT = 260;
const PANEL_WIDTH = WIDTH / PANELS.length;
const LEFT = 48;
const RIGHT = 16;
const TOP = 44;
const BOTTOM = 40;
const INK = "#24292f";
const FAINT = "#d0d7de";
const LINE = "#0969da";

/** Undefined if growth was not measured. */
export function growthSvg(figures: Figures): string | undefined {
	const ofGrowth = figures.all.filter(({ scenario, name }) => scenario === "growth" && name === "CPU per request");
	if (ofGrowth.length === 0) return undefined;
	const panels = PANELS.map((panel, index) => drawPanel(panel, pointsOf(panel, ofGrowth), index * PANEL_WIDTH));
	return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="11" fill="${INK}">
<title>Processor time of a request, microseconds, and what it grows with</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>
<text x="12" y="18" font-size="13" font-weight="600">CPU per request, µs: median and range</text>
${panels.join("\n")}
</svg>
`;
}

function pointsOf({ rows }: Panel, figures: readonly Figure[]): Point[] {
	return figures
		.flatMap((figure) => {
			const found = rows.exec(figure.row)?.[1];
			return found === undefined ? [] : [{ x: Number(found.replaceAll(",", "")), ...spreadOf(figure.values) }];
		})
		.sort((a, b) => a.x - b.x);
}

function drawPanel(panel: Panel, points: readonly Point[], offset: number): string {
	if (points.length === 0) return "";
	const left = offset + LEFT;
	const right = offset + PANEL_WIDTH - RIGHT;
	const bottom = HEIGHT - BOTTOM;
	const top = Math.max(...points.map(({ max }) => max)) * 1.1;
	const low = panel.logarithmic ? Math.min(...points.map(({ min }) => min)) / 1.5 : 0;
	const scale = panel.logarithmic ? Math.log : (value: number) => value;
	const y = (value: number) => bottom - ((scale(value) - scale(low)) / (scale(top) - scale(low))) * (bottom - TOP);
	// Evenly spaced: the numbers are steps of ten and more.
	const x = (index: number) =>
		points.length === 1 ? (left + right) / 2 : left + 14 + (index / (points.length - 1)) * (right - left - 28);
	const ticks = panel.logarithmic ? [low * 1.5, Math.sqrt(low * 1.5 * top), top / 1.1] : [0, top / 2.2, top / 1.1];
	const grid = ticks.map(
		(tick) =>
			`<line x1="${round(left)}" x2="${round(right)}" y1="${round(y(tick))}" y2="${round(y(tick))}" stroke="${FAINT}"/><text x="${round(left - 5)}" y="${round(y(tick) + 4)}" text-anchor="end">${tick === 0 ? "0" : numberText(tick)}</text>`,
	);
	const marks = points.map(({ x: at, median, min, max }, index) => {
		const [px, label] = [round(x(index)), shortNumber(at)];
		return `<line x1="${px}" x2="${px}" y1="${round(y(min))}" y2="${round(y(max))}" stroke="${LINE}" stroke-opacity="0.5" stroke-width="4"/><circle cx="${px}" cy="${round(y(median))}" r="3" fill="${LINE}"/><text x="${px}" y="${bottom + 15}" text-anchor="middle">${label}</text>`;
	});
	const line = points.map(({ median }, index) => `${round(x(index))},${round(y(median))}`).join(" ");
	return `<g>
${grid.join("\n")}
<polyline points="${line}" fill="none" stroke="${LINE}" stroke-width="1.5"/>
${marks.join("\n")}
<text x="${round((left + right) / 2)}" y="${HEIGHT - 8}" text-anchor="middle">${panel.title}</text>
</g>`;
}

const round = (value: number) => Number(value.toFixed(1));

function shortNumber(value: number): string {
	if (value >= 1_000_000) return `${value / 1_000_000} M`;
	return value >= 10_000 ? `${value / 1_000} k` : String(value);
}
