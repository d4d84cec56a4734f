/** How many keys a second are revoked, each until no instance admits it any more. */
import { systemClock } from "../../src/base/clock.ts";
import { waitEverywhere } from "../../src/cluster/wait-everywhere.ts";
import { revokeKey } from "../../src/keys/key-admin.ts";
import type { Figures } from "./figures.ts";
import { liveInstance } from "./live-instance.ts";
import { fillWithKeys } from "./population.ts";
import { cpuMicros } from "./process-usage.ts";
import { walBytes } from "./wal.ts";
import type { World } from "./world.ts";

const INSTANCES = 2;
const AT_ONCE = [1, 16];
const KEYS = { quick: 200, full: 1_000 };
const DEADLINE_MS = 30_000;

/** With two live instances, which follow the control log as gateways do. */
export async function revocations(world: World, figures: Figures): Promise<void> {
	const database = await world.postgres.database("bench_revocations");
	const perRound = world.mode.quick ? KEYS.quick : KEYS.full;
	await fillWithKeys(database, perRound * AT_ONCE.length * (world.mode.rounds + 1));
	const keys = await database.sql<{ id: string }[]>`select id from api_key order by id`;
	const instances = [];
	for (let index = 0; index < INSTANCES; index++)
		instances.push(await liveInstance(database, world.folder, `revocations-${index}`));
	let pending = 0;
	const revoke = async (id: string) => {
		const entry = await revokeKey(database.statements, { id });
		const { effective } = await waitEverywhere({ liveness: database.liveness, clock: systemClock }, entry, DEADLINE_MS);
		if (!effective) pending += 1;
	};
	try {
		for (const atOnce of AT_ONCE) {
			for (let round = 0; round <= world.mode.rounds; round++) {
				const own = keys.splice(0, perRound);
				const [walBefore, cpuBefore] = [await walBytes(database.sql), cpuMicros(world.postgres.pids())];
				const startedMs = performance.now();
				const turn = async () => {
					for (let next = own.pop(); next !== undefined; next = own.pop()) await revoke(next.id);
				};
				await Promise.all(Array.from({ length: atOnce }, turn));
				const seconds = (performance.now() - startedMs) / 1_000;
				if (round === 0) continue;
				const row = `${atOnce} at once`;
				figures.add("revocations", "revocations", "1/s", row, perRound / seconds);
				const micros = cpuMicros(world.postgres.pids()) - cpuBefore;
				figures.add("revocations", "CPU of Postgres per revocation", "µs", row, micros / perRound);
				const wal = (await walBytes(database.sql)) - walBefore;
				figures.add("revocations", "WAL per revocation", "bytes", row, wal / perRound);
			}
		}
	} finally {
		for (const instance of instances) await instance.stop();
	}
	world.checks.push({
		name: "revocations: each was effective on every instance",
		ok: pending === 0,
		detail: `${pending} were not`,
	});
	await database.close();
}
