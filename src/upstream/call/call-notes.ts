import type { Clock } from "../../base/clock.ts";
import type { Log, LogFields } from "../../base/log.ts";
import type { Replica } from "../replicas/replica.ts";
import type { CallContext } from "./attempt.ts";
import type { UpstreamFailure } from "./failure.ts";

export type CallNotes = ReturnType<typeof createCallNotes>;

/**
 * During a shortage of descriptors all requests fail alike, hundreds per second. The log has one line for the first
 * failure and then one per interval.
 */
const SHORTAGE_LINE_MS = 10_000;

/** Kinds whose detail is this service's own text. */
const OURS: ReadonlySet<string> = new Set([
	"timeout",
	"unreachable",
	"unreadable",
	"died",
	"aborted",
	"stopping",
	"shortage",
	"crowded",
]);

/** Logs calls that failed. */
export function createCallNotes({ clock, log }: { clock: Clock; log: Log }) {
	/** Set during the interval after a line: the failures that the log does not have yet, and the last of them. */
	let untold: { calls: number; last: LogFields } | undefined;
	let cancel = () => {};

	function short(fields: LogFields): void {
		if (untold === undefined) tell(1, fields);
		else untold = { calls: untold.calls + 1, last: fields };
	}

	function tell(calls: number, fields: LogFields): void {
		log.warn("no connection to a model server can be begun: this process may open no more files (ulimit -n)", {
			calls,
			...fields,
		});
		untold = { calls: 0, last: fields };
		cancel = clock.after(SHORTAGE_LINE_MS, () => {
			const { calls, last } = untold as NonNullable<typeof untold>;
			untold = undefined;
			if (calls > 0) tell(calls, last);
		});
	}

	return {
		/**
		 * The detail of a status or an error event is the upstream's text, which may repeat the prompt, so it stays out of
		 * the log. The upstream's own log has it under the same request id.
		 */
		failed(context: CallContext, replica: Replica, failure: UpstreamFailure) {
			const { kind, status } = failure;
			const ours = status === undefined && OURS.has(kind);
			const fields = {
				request: context.requestId,
				account: context.accountId,
				replica: replica.alias,
				kind,
				status,
				...(ours ? { detail: failure.private } : {}),
			};
			if (kind === "misconfigured") log.warn("an upstream refuses us", fields);
			else if (kind === "shortage") short(fields);
			else if (kind === "aborted" || kind === "stopping" || kind === "rejected" || kind === "context_length")
				log.debug("an upstream call ended", fields);
			else log.info("an upstream call failed", fields);
		},
		stop: () => cancel(),
	};
}
