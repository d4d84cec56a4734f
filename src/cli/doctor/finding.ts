/** What `doctor` looks at, in the order in which it is shown. */
export type Area =
	| "configuration"
	| "secrets"
	| "database"
	| "clock"
	| "disk"
	| "limits"
	| "upstreams"
	| "mail"
	| "payments";

/** broken: the service does not work so, or loses money. warning: it works worse than it could. note: to be known. */
export type State = "ok" | "note" | "warning" | "broken";

/** One thing that was looked at. It never holds a secret: people paste this into tickets. */
export interface Finding {
	readonly area: Area;
	readonly state: State;
	/** What is so. */
	readonly what: string;
	/** What to do about it; for all that is not well. */
	readonly todo?: string;
}

/** Where the runbook says what an area's troubles lead to. */
export function pageOf(area: Area): string {
	return `src/ops/runbook.md#doctor-${area}`;
}

/** The findings of one area as they are made. */
export function findingsOf(area: Area) {
	const list: Finding[] = [];
	return {
		list: list as readonly Finding[],
		ok: (what: string) => void list.push({ area, state: "ok", what }),
		note: (what: string) => void list.push({ area, state: "note", what }),
		warn: (what: string, todo: string) => void list.push({ area, state: "warning", what, todo }),
		broken: (what: string, todo: string) => void list.push({ area, state: "broken", what, todo }),
	};
}

/** The text of a failure, on one line. */
export function reasonOf(error: unknown): string {
	const { message, code } = error as { message?: unknown; code?: unknown };
	const text = typeof message === "string" && message !== "" ? message : String(code ?? error);
	return text.replace(/\s+/g, " ").trim();
}
