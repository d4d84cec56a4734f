import { systemClock, withDeadline } from "../base/clock.ts";
import type { AppendedEntry } from "../cluster/control-log.ts";
import { waitForAllInstances } from "../cluster/wait-for-all-instances.ts";
import { DatabaseTimeout } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./command.ts";
import { parseDurationMs } from "./setting-options.ts";

/** Longer than the longest lease (ten minutes), after which every instance has applied the change or is fenced. */
const DEADLINE_MS = 660_000;
/** Deadline of the change itself: without an answer of the synchronous standby its commit never returns. */
const ACT_MS_MAX = 10_000;

/** Runs `act` for the id in the first argument, then waits until all instances have applied the change. */
export function actAndFence(
	{ withDatabase }: CommandContext,
	input: CommandInput,
	act: (statements: Statements, id: string) => Promise<AppendedEntry & { readonly id: string }>,
	more: Readonly<Record<string, unknown>> = {},
): Promise<CommandOutput> {
	return withDatabase(async ({ statements, liveness }) => {
		const acting = act(statements, input.argument(0));
		const { id, ...entry } = await withDeadline(systemClock, acting, ACT_MS_MAX, late);
		return fenceOutput({ liveness }, { id, ...more }, entry, input);
	});
}

const late = () => new DatabaseTimeout("the database did not answer in time: it may wait for a standby");

/** Waits until every live instance has applied the entry. Exit code 1 after the deadline; with `--no-wait` always 0. */
export async function fenceOutput(
	deps: { liveness: Statements },
	subject: { readonly id: string } & Readonly<Record<string, unknown>>,
	entry: AppendedEntry,
	input: CommandInput,
): Promise<CommandOutput & { readonly json: object }> {
	const noWait = input.flag("no-wait");
	const timeout = input.option("timeout");
	const deadlineMs = noWait ? 0 : timeout === undefined ? DEADLINE_MS : parseDurationMs("timeout", timeout);
	const everywhere = await waitForAllInstances({ ...deps, clock: systemClock }, entry, deadlineMs);
	const { effective, elapsedMs, effectiveByMs, pending, known } = everywhere;
	const base = { ...subject, effective, elapsed_ms: elapsedMs };
	if (effective) return { json: base, text: `${subject.id}: applied by all instances after ${elapsedMs} ms` };
	if (!known || effectiveByMs === null)
		return {
			json: { ...base, effective_by: null, pending: [] },
			text: `${subject.id}: recorded, and not known to be in force: the database went away, or another server took over, during the wait. Repeat the command`,
			exitCode: noWait ? 0 : 1,
		};
	const waiting = pending.map(({ id, epoch, leaseUntilMs }) => ({
		id,
		epoch,
		lease_until: new Date(leaseUntilMs).toISOString(),
	}));
	const lines = waiting.map(
		({ id, epoch, lease_until }) => `  ${id} epoch ${epoch}; its lease ends ${lease_until} unless renewed`,
	);
	return {
		json: { ...base, effective_by: new Date(effectiveByMs).toISOString(), pending: waiting },
		text: [`${subject.id}: changed, but these instances have not applied the change yet:`, ...lines].join("\n"),
		exitCode: noWait ? 0 : 1,
	};
}
