/** A subtitle cue; times in seconds. */
export interface Cue {
	readonly start: number;
	readonly end: number;
	readonly text: string;
}

/** SubRip. */
export function* srtOf(cues: readonly Cue[]): Generator<string> {
	for (const [at, { start, end, text }] of cues.entries())
		yield `${at + 1}\n${timeOf(start, ",")} --> ${timeOf(end, ",")}\n${lineOf(text)}\n\n`;
}

/** WebVTT. */
export function* vttOf(cues: readonly Cue[]): Generator<string> {
	yield "WEBVTT\n\n";
	for (const { start, end, text } of cues) yield `${timeOf(start, ".")} --> ${timeOf(end, ".")}\n${lineOf(text)}\n\n`;
}

/** A blank line or an arrow would end or begin a cue. */
function lineOf(text: string): string {
	return text
		.trim()
		.replace(/\s*[\r\n]+\s*/g, "\n")
		.replaceAll("-->", "->");
}

function timeOf(seconds: number, point: string): string {
	const ms = Math.max(0, Math.round(seconds * 1000));
	const two = (value: number) => String(value).padStart(2, "0");
	const hours = two(Math.floor(ms / 3_600_000));
	const minutes = two(Math.floor(ms / 60_000) % 60);
	return `${hours}:${minutes}:${two(Math.floor(ms / 1000) % 60)}${point}${String(ms % 1000).padStart(3, "0")}`;
}
