/** Finds failures in the output of `bun test`, to print them again at the end. */
export interface FailureReader {
	read(text: string): void;
	end(): void;
	/** Each with its file, and the output since the test before. */
	found(): readonly string[];
}

/** Lines of one failure; the rest is in the output above. */
const LINES_MAX = 200;
const FAILURES_MAX = 100;

const FILE = /^test\/\S+\.test\.ts:$/;
const PASSED = /^\((pass|skip|todo)\) /;
/** A test, or a whole file whose process died. */
const FAILED = /^(\(fail\)|✗) /;
const OUTSIDE = "# Unhandled error between tests";
const LIST = /^\d+ tests? failed:$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the colours that a terminal is told begin with one.
const COLOUR = /\x1b\[[0-9;]*m/g;

export function createFailureReader(): FailureReader {
	const found: string[] = [];
	let rest = "";
	let file = "";
	let lines: string[] = [];
	let listed = false;

	function keep(): void {
		if (found.length < FAILURES_MAX) found.push([file, ...lines.slice(-LINES_MAX)].join("\n").trim());
		lines = [];
	}

	function take(line: string): void {
		if (FILE.test(line)) {
			flush();
			file = line;
		} else if (LIST.test(line)) listed = true;
		else if (PASSED.test(line)) flush();
		else if (FAILED.test(line)) {
			lines.push(line);
			if (listed) lines = [];
			else keep();
		} else lines.push(line);
	}

	/** An error outside of tests has no closing line. */
	function flush(): void {
		const at = lines.indexOf(OUTSIDE);
		lines = at === -1 ? [] : lines.slice(at);
		if (lines.length > 0) keep();
	}

	return {
		read(text) {
			const all = (rest + text).split("\n");
			rest = all.pop() ?? "";
			for (const line of all) take(line.replace(COLOUR, "").trimEnd());
		},
		end() {
			if (rest !== "") take(rest);
			flush();
			rest = "";
			file = "";
			listed = false;
		},
		found: () => found,
	};
}
