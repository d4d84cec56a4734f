/** How many slices of credit one Postgres gives out, and what each costs it. */
import { newUuid } from "../../src/base/id.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import type { Figures } from "./figures.ts";
import { liveInstance } from "./live-instance.ts";
import { fillWithKeys } from "./population.ts";
import { cpuMicros } from "./process-usage.ts";
import { walBytes } from "./wal.ts";
import type { World } from "./world.ts";

const ACCOUNTS = 4_000;
const GRANTS = { quick: 20_000, full: 80_000 };
const PER_STATEMENT = 100;
/** As many as a gateway has connections for them. */
const AT_ONCE = 4;
const AMOUNT = nanoUsd(1e6);

/** By the statement that gateways use, a hundred budgets at a time, each budget again and again. */
export async function grants(world: World, figures: Figures): Promise<void> {
	const database = await world.postgres.database("bench_grants");
	await fillWithKeys(database, ACCOUNTS);
	const rows = await database.sql<{ id: string }[]>`select id from budget where kind = 'account' order by id`;
	const instance = await liveInstance(database, world.folder, "grants");
	const count = world.mode.quick ? GRANTS.quick : GRANTS.full;
	let granted = 0;
	const turn = async (which: number) => {
		// Each connection has budgets of its own: what is under way in another statement would be busy.
		const own = rows.filter((_, at) => at % AT_ONCE === which);
		for (let at = 0, done = 0; done < count / AT_ONCE; done += PER_STATEMENT, at = (at + PER_STATEMENT) % own.length) {
			const wishes = own
				.slice(at, at + PER_STATEMENT)
				.map(({ id }) => ({ op: newUuid(), budget: id, want: AMOUNT, min: AMOUNT, again: false, ticket: null }));
			for (const { amount } of await instance.store.grant(wishes)) granted += amount === AMOUNT ? 1 : 0;
		}
	};
	try {
		for (let round = 0; round <= world.mode.rounds; round++) {
			granted = 0;
			const [walBefore, cpuBefore] = [await walBytes(database.sql), cpuMicros(world.postgres.pids())];
			const startedMs = performance.now();
			await Promise.all(Array.from({ length: AT_ONCE }, (_, which) => turn(which)));
			const seconds = (performance.now() - startedMs) / 1_000;
			if (round === 0) continue;
			figures.add("grants", "grants", "1/s", "tollgate", granted / seconds);
			const micros = cpuMicros(world.postgres.pids()) - cpuBefore;
			figures.add("grants", "CPU of Postgres per grant", "µs", "tollgate", micros / granted);
			figures.add(
				"grants",
				"WAL per grant",
				"bytes",
				"tollgate",
				((await walBytes(database.sql)) - walBefore) / granted,
			);
		}
	} finally {
		await instance.stop();
	}
	const { reconciled, broken } = await database.books();
	world.checks.push(
		{ name: "grants: each was granted", ok: granted === count, detail: `${granted} of ${count} in the last round` },
		{ name: "grants: the books reconcile", ok: reconciled, detail: broken.join("; ") || "all checks hold" },
	);
	await database.close();
}
