import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { FenceStore } from "../cluster/fence.ts";
import { createSilences } from "../cluster/fence.ts";
import type { Statements } from "../db/statements.ts";

const LOOK_MS = 200;
const CLOSE_BATCH = 500;

interface EpochRow {
	epoch: number;
	beat: string;
	state: "joining" | "live" | "silent" | "dead" | "closing";
	ttl_ms: number;
}

/**
 * An operator attests that the journals of this identity are lost: its epochs are closed at what Postgres knows. Whether
 * one of them may still be admitting is waited for by our own clock, as a fence does it; if it renews its lease meanwhile,
 * it is running: Fault conflict. Fault not_found if there is none.
 */
export async function recoverLost(
	deps: { statements: Statements; fence: Pick<FenceStore, "fenceOff">; clock: Clock },
	instanceId: string,
	options: { graceMs: number },
): Promise<{ epochs: number; leases: number }> {
	const { statements, fence, clock } = deps;
	const silences = createSilences(clock);
	const first = new Map<number, string>();
	for (;;) {
		const rows = await statements<EpochRow>`
			select epoch, beat, state, ttl_ms from instance_now where id = ${instanceId} and state <> 'left' order by epoch`;
		if (rows.length === 0) throw new Fault("not_found", `No unfinished epoch of instance ${instanceId}.`);
		const unsure = rows.filter(({ state }) => state === "live" || state === "joining");
		for (const { epoch, beat, ttl_ms } of unsure) {
			if ((first.get(epoch) ?? beat) !== beat)
				throw new Fault("conflict", `Instance ${instanceId} is running: it renews its lease.`);
			first.set(epoch, beat);
			if (silences.ofMs(String(epoch), Number(beat)) > ttl_ms + options.graceMs)
				await fence.fenceOff(instanceId, epoch, Number(beat));
		}
		if (unsure.length === 0) return closeAll(deps, instanceId, rows);
		await sleep(clock, LOOK_MS);
	}
}

async function closeAll(
	{ statements, clock }: { statements: Statements; clock: Clock },
	instanceId: string,
	rows: readonly EpochRow[],
): Promise<{ epochs: number; leases: number }> {
	let leases = 0;
	for (const { epoch } of rows) {
		for (let done = false; !done; ) {
			const [row] = await statements<{ closed: number; done: boolean }>`
				select closed, done from lease_close(${instanceId}, ${epoch}, true, ${CLOSE_BATCH})`;
			leases += row?.closed ?? 0;
			done = row?.done ?? true;
			if (!done && row?.closed === 0) await sleep(clock, LOOK_MS);
		}
	}
	return { epochs: rows.length, leases };
}
