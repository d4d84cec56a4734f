/** Tests of `recoverLostInstance`: an operator declares that an instance and its journal are lost. */
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createPgFenceStore } from "../../src/cluster/pg-fence-store.ts";
import type { Statements, StatementValue } from "../../src/db/statements.ts";
import { recoverLostInstance } from "../../src/ledger/lost-journal.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";
import { outcome } from "./fixture.ts";
import { CREDIT, withLeases } from "./lease-world.ts";

const world = withLeases();
const { startChild, startHere, reserveHere, broken, available } = world;

test("attesting an instance as lost closes its leases, and is refused while it may run", async () => {
	const child = await startChild("lost", 1_500);
	await child.acts("open a 1000");
	await waitFor(async () => (await world.db.sql`select 1 from reservation`).length === 1, "the reservation");
	const { statements, liveness } = world.db;
	const deps = { statements, fence: createPgFenceStore(liveness), clock: systemClock };
	const attest = () => recoverLostInstance(deps, "lost", { graceMs: 200 });
	await expect(attest()).rejects.toMatchObject({ code: "conflict" });
	await child.end();
	rmSync(join(world.dataDir, "journal"), { recursive: true });
	const killedMs = performance.now();
	expect(await attest()).toEqual({ epochs: 1, leases: 2 });
	// The command waited for one lease after the last heartbeat, by this process's clock.
	expect(performance.now() - killedMs).toBeGreaterThan(1_500);
	expect(await available()).toBe(CREDIT);
	const [row] = await world.db.sql`select charged_nano_usd as charged, basis, ending from usage_event`;
	expect([Number(row?.charged), row?.basis, row?.ending]).toEqual([0, "recovered", "crashed"]);
	expect(await broken()).toEqual([]);
});

test("attesting an instance as lost is refused if the instance joins during the wait", async () => {
	const child = await startChild("again");
	await child.end();
	const deps = { statements: world.db.statements, fence: createPgFenceStore(world.db.liveness), clock: systemClock };
	let answer: unknown;
	const attested = recoverLostInstance(deps, "again", { graceMs: 200 }).catch((error: unknown) => (answer = error));
	await waitFor(async () => {
		await world.db.sql`select instance_join('again', 60000)`;
		return answer !== undefined;
	}, "the refusal");
	await attested;
	expect(answer).toMatchObject({ code: "conflict", message: "Instance again is running: it has joined again." });
});

test("attesting an instance as lost is refused if it returns before its leases close", async () => {
	const instanceLease = await startHere("back");
	const hold = await reserveHere(instanceLease, 1_000);
	const fence = createPgFenceStore(world.db.liveness);
	const standing = async () =>
		(await world.db.sql`select epoch, beat, state from instance_now where id = 'back' order by epoch desc`)[0];
	const found = await standing();
	await fence.silent("back", found?.epoch, found?.beat);
	// Delays the closing of leases until the instance sends a heartbeat.
	const slow: Statements = Object.assign(
		async <Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]) => {
			if (/lease_close/.test(strings.join(" ")))
				await waitFor(async () => (await standing())?.state !== "silent", "it");
			return world.db.statements<Row>(strings, ...values);
		},
		{ end: async () => {} },
	);
	const slowFence = {
		async fenceOff(id: string, epoch: number, beat: number) {
			await waitFor(async () => (await standing())?.state !== "silent", "it to be back");
			await fence.fenceOff(id, epoch, beat);
		},
	};
	const attested = recoverLostInstance({ statements: slow, fence: slowFence, clock: systemClock }, "back", {
		graceMs: 200,
	});
	await expect(attested).rejects.toMatchObject({ code: "conflict" });
	expect(await standing()).toMatchObject({ epoch: found?.epoch, state: "live" });
	hold.ledger.settle(hold, outcome(40));
	await world.expectEnd(instanceLease, 40);
	// The command need not wait for an instance that a witness has already found silent.
	const child = await startChild("gone");
	await child.end();
	const [gone] = await world.db.sql`select epoch, beat from instance_now where id = 'gone'`;
	await fence.silent("gone", gone?.epoch, gone?.beat);
	const deps = { statements: world.db.statements, fence, clock: systemClock };
	expect(await recoverLostInstance(deps, "gone", { graceMs: 200 })).toMatchObject({ epochs: 1 });
});

test("attesting an instance as lost pauses only after steps that closed no lease", async () => {
	const clock = createManualClock();
	const epoch = { epoch: 1, beat: "1", state: "dead", ttl_ms: 1, place: "" };
	const steps = [
		{ closed: 500, done: false },
		{ closed: 0, done: false },
		{ closed: 0, done: true },
	];
	const statements = (async ([text = ""]: TemplateStringsArray) =>
		/lease_close/.test(text) ? [steps.shift()] : [epoch]) as unknown as Statements;
	const recovered = recoverLostInstance({ statements, fence: { async fenceOff() {} }, clock }, "lost", { graceMs: 0 });
	await waitFor(() => clock.pending() === 1, "the pause");
	expect(steps).toHaveLength(1);
	clock.advance(200);
	expect(await recovered).toEqual({ epochs: 1, leases: 500 });
});
