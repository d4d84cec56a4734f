/** Draws the dashboards of a run from Prometheus' answers to the same queries that Grafana uses. */
import type { Picture } from "./prometheus.ts";

const COLUMNS = 3;
const WIDTH = 400;
const HEIGHT = 190;
const LEFT = 12;
const TOP = 30;
const BOTTOM = 44;
const COLOURS = ["#0969da", "#cf222e", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#57606a", "#0a3069"];
const LEGENDS_MAX = 4;

export function dashboardSvg(pictures: readonly Picture[]): string {
	const rows = Math.ceil(pictures.length / COLUMNS);
	const times = pictures.flatMap(({ lines }) => lines.flatMap(({ sample }) => sample.values.map(([at]) => at)));
	const span = { from: Math.min(...times), to: Math.max(...times) };
	const panels = pictures.map((picture, at) => {
		const [x, y] = [(at % COLUMNS) * WIDTH, Math.floor(at / COLUMNS) * HEIGHT];
		return `<g transform="translate(${x} ${y})">${panelOf(picture, span)}</g>`;
	});
	return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${COLUMNS * WIDTH} ${rows * HEIGHT}" font-family="system-ui, sans-serif" font-size="10" fill="#24292f">
<title>The dashboard's queries over a run, as Prometheus answered them</title>
<rect width="100%" height="100%" fill="#ffffff"/>
${panels.join("\n")}
</svg>
`;
}

function panelOf({ title, unit, lines }: Picture, { from, to }: { from: number; to: number }): string {
	const known = lines.map(({ legend, sample }) => ({
		legend,
		points: sample.values
			.map(([at, value]) => [at, Number(value)] as const)
			.filter(([, value]) => Number.isFinite(value)),
	}));
	const most = Math.max(1e-9, ...known.flatMap(({ points }) => points.map(([, value]) => value)));
	const place = ([at, value]: readonly [number, number]) => {
		const x = LEFT + ((at - from) / Math.max(1, to - from)) * (WIDTH - 2 * LEFT);
		const y = HEIGHT - BOTTOM - (Math.max(0, value) / most) * (HEIGHT - TOP - BOTTOM);
		return `${x.toFixed(1)},${y.toFixed(1)}`;
	};
	const paths = known.map(({ points }, nth) => {
		const colour = COLOURS[nth % COLOURS.length];
		return `<polyline points="${points.map(place).join(" ")}" fill="none" stroke="${colour}" stroke-width="1.2"/>`;
	});
	const legends = known.slice(0, LEGENDS_MAX).map(({ legend }, nth) => {
		const colour = COLOURS[nth % COLOURS.length];
		return `<text x="${LEFT + (nth % 2) * 190}" y="${HEIGHT - 24 + 12 * Math.floor(nth / 2)}" fill="${colour}">${escaped(legend)}</text>`;
	});
	const more = known.length > LEGENDS_MAX ? ` (${known.length} series)` : "";
	return `<rect x="4" y="4" width="${WIDTH - 8}" height="${HEIGHT - 8}" fill="none" stroke="#d0d7de"/>
<text x="${LEFT}" y="20" font-weight="600">${escaped(title)}${more}</text>
<text x="${WIDTH - LEFT}" y="20" text-anchor="end">to ${numberText(most)} ${unit}</text>
${paths.join("\n")}
${legends.join("\n")}`;
}

const numberText = (value: number) => (value >= 1_000 ? value.toExponential(1) : String(Number(value.toPrecision(3))));
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
