import { systemClock } from "../base/clock.ts";
import { pendingInstances, waitApplied } from "../cluster/fence.ts";
import type { Statements } from "../db/statements.ts";
import type { CommandInput, OptionSpec, Output } from "./command.ts";
import { durationMsOf } from "./option-values.ts";

/** An instance closes its gate before its lease ends by its own clock; this covers a clock that runs slower. */
const GRACE_MS = 1_000;
/** The longest lease that can be configured is ten minutes; by then every instance has applied it or is fenced off. */
const DEADLINE_MS = 660_000;

export const FENCE_OPTIONS = {
	"no-wait": { type: "boolean", help: "return at once, with the instances that do not know of it yet" },
	timeout: { type: "string", value: "TIME", help: "wait at most this long (45s, 2m); default 11m" },
} as const satisfies Record<string, OptionSpec>;

/**
 * Waits until every live instance acts by control entry `seq`, or its lease is over. `effective: false` after the
 * deadline is exit code 1; with `--no-wait` it is not an error.
 */
export async function waitEverywhere(
	deps: { statements: Statements },
	subject: { readonly id: string; readonly state?: string },
	seq: number,
	input: CommandInput,
): Promise<Output> {
	const noWait = input.flag("no-wait");
	const timeout = input.option("timeout");
	const deadlineMs = noWait ? 0 : timeout === undefined ? DEADLINE_MS : durationMsOf("timeout", timeout);
	const pending = pendingInstances(deps.statements);
	const result = await waitApplied({ pending, clock: systemClock }, seq, { deadlineMs, graceMs: GRACE_MS });
	const elapsedMs = Math.round(result.elapsedMs * 10) / 10;
	const base = { ...subject, effective: result.effective, elapsed_ms: elapsedMs };
	if (result.effective) return { json: base, text: `${subject.id}: in force everywhere after ${elapsedMs} ms` };
	const waiting = result.pending.map(({ id, epoch, leaseUntilMs }) => ({
		id,
		epoch,
		lease_until: new Date(leaseUntilMs).toISOString(),
	}));
	const effectiveBy = new Date(
		Math.max(...result.pending.map(({ leaseUntilMs }) => leaseUntilMs)) + GRACE_MS,
	).toISOString();
	const lines = waiting.map(
		({ id, epoch, lease_until }) => `  ${id} epoch ${epoch}, its lease ends ${lease_until} unless it renews it`,
	);
	return {
		json: { ...base, effective_by: effectiveBy, pending: waiting },
		text: [`${subject.id}: not in force everywhere yet; these instances have not applied it:`, ...lines].join("\n"),
		exitCode: noWait ? 0 : 1,
	};
}
