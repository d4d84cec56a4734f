import { t } from "./texts.tsx";

/** Checks a batch file in the browser before upload; the service checks it again. */
export interface BatchCheck {
	readonly lines: number;
	/** From its first line. */
	readonly endpoint: string | null;
	/** The first problems; empty if it may be sent. */
	readonly problems: readonly string[];
}

/** The service's limits. */
const LINES_MAX = 50_000;
const PROBLEMS_SHOWN_MAX = 5;
const ENDPOINTS = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"];

/** `text`: lines of JSON, each a request with `custom_id`, `method`, `url` and `body`. */
export function checkBatch(text: string): BatchCheck {
	const problems: string[] = [];
	const seen = new Set<string>();
	let lines = 0;
	let endpoint: string | null = null;
	for (const [index, line] of text.split("\n").entries()) {
		if (problems.length >= PROBLEMS_SHOWN_MAX) break;
		if (line.trim() === "") continue;
		lines += 1;
		const say = (what: string) => void problems.push(t("Line {index}: {what}", { index: index + 1, what }));
		const value = objectOf(line);
		if (value === undefined) {
			say(t("this is no JSON object."));
			continue;
		}
		const { custom_id: id, method, url, body } = value;
		endpoint ??= typeof url === "string" ? url : null;
		if (typeof id !== "string" || id === "") say(t("it has no custom_id."));
		else if (seen.has(id)) say(t("an earlier line has the same custom_id."));
		else seen.add(id);
		if (method !== "POST") say(t("its method must be POST."));
		if (typeof url !== "string" || !ENDPOINTS.includes(url))
			say(t("its url must be one of {endpoints}.", { endpoints: ENDPOINTS.join(", ") }));
		else if (url !== endpoint) say(t("its url is not that of the first line."));
		if (typeof body !== "object" || body === null) say(t("it has no body."));
	}
	if (lines === 0) problems.push(t("The file is empty."));
	if (lines > LINES_MAX) problems.push(t("The file has more than {count} lines.", { count: LINES_MAX }));
	return { lines, endpoint, problems };
}

function objectOf(line: string): Record<string, unknown> | undefined {
	try {
		const value: unknown = JSON.parse(line);
		return typeof value === "object" && value !== null && !Array.isArray(value)
			? (value as Record<string, unknown>)
			: undefined;
	} catch {
		return undefined;
	}
}

/** A file that was deleted or locked since it was chosen is reported as unreadable. */
export const readBatch = (file: Blob): Promise<BatchCheck> =>
	file.text().then(checkBatch, () => ({
		lines: 0,
		endpoint: null,
		problems: [t("The browser cannot read this file. Choose it again.")],
	}));
