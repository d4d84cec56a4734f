import { explainError } from "../explain.ts";

export const CHECKS = [
	"configuration",
	"database",
	"schema",
	"clock",
	"disk",
	"address",
	"upstreams",
	"mail",
	"payments",
] as const;
export type CheckName = (typeof CHECKS)[number];

/** `broken`: the service does not work or loses money. `warning`: a risk. `note`: information. */
export type FindingState = "ok" | "note" | "warning" | "broken";

/** Result of a check. Contains no secret, because operators paste findings into tickets. */
export interface Finding {
	readonly area: CheckName;
	readonly state: FindingState;
	readonly what: string;
	/** The remedy; undefined if `what` implies it. */
	readonly todo?: string;
}

export type Findings = ReturnType<typeof createFindings>;

/** Collects the findings of one check. */
export function createFindings(area: CheckName) {
	const list: Finding[] = [];
	return {
		list: list as readonly Finding[],
		ok: (what: string) => void list.push({ area, state: "ok", what }),
		note: (what: string) => void list.push({ area, state: "note", what }),
		warn: (what: string, todo: string) => void list.push({ area, state: "warning", what, todo }),
		broken: (what: string, todo: string) => void list.push({ area, state: "broken", what, todo }),
		/** Adds a measured value, with the remedy only if the value is doubtful or broken. */
		judge(what: string, todo: string, isDoubtful: boolean, isBroken = false) {
			const state = isBroken ? "broken" : "warning";
			list.push(isDoubtful || isBroken ? { area, state, what, todo } : { area, state: "ok", what });
		},
		/** Adds an exception as `broken`, with the text that commands and `serve` print for it. */
		failed: (error: unknown) => void list.push({ area, state: "broken", what: explainError(error).message }),
	};
}

/** Returns an error's message on one line. */
export function errorReason(error: unknown): string {
	const { message, code } = error as { message?: unknown; code?: unknown };
	const text = typeof message === "string" && message !== "" ? message : String(code ?? error);
	return text.replace(/\s+/g, " ").trim();
}
