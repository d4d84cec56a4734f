import { edenGC, fullGC, heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import {
	type ClaimStore,
	createRunningClaims,
	type IdempotencyClaim,
} from "../../../src/gateway/idempotency/running.ts";
import { createManualClock } from "../../support/upstream-clock.ts";

const claims: ClaimStore = { claim: async () => ({ state: "new" }), keep: async () => {}, release: async () => {} };
/** Runs the promise callbacks that a step of the test clock started. */
async function settled(): Promise<void> {
	for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}
const claimOf = (id: string): IdempotencyClaim => ({ id, accountId: "a", proof: `proof ${id}`, requestUuid: id });

test("an ended request with an Idempotency-Key is freed by a young garbage collection", async () => {
	const running = createRunningClaims({ claims, clock: systemClock, log: silentLog });
	const open: IdempotencyClaim[] = [];
	fullGC();
	const before = heapStats().objectTypeCounts.Promise ?? 0;
	for (let nth = 0; nth < 20_000; nth++) {
		const claim = claimOf(`${nth}`);
		running.begin(claim);
		open.push(claim);
		if (open.length > 32) running.keep(open.shift() as IdempotencyClaim, null);
		if (nth % 100 === 0) await Bun.sleep(0);
		if (nth % 4_000 === 0) edenGC();
	}
	for (const claim of open) running.release(claim);
	await running.stop();
	edenGC();
	expect((heapStats().objectTypeCounts.Promise ?? 0) - before).toBeLessThan(2_000);
});

test("an answer to keep is stored after an hour's outage or at the gateway's stop", async () => {
	const clock = createManualClock();
	const kept: string[] = [];
	let away = true;
	const store = {
		...claims,
		async keep({ id }: IdempotencyClaim) {
			if (away) throw new Error("away");
			kept.push(id);
		},
		release: async ({ id }: IdempotencyClaim) => void kept.push(`${id} released`),
	};
	const running = createRunningClaims({ claims: store, clock, log: silentLog });
	const [early, late] = [claimOf("early"), claimOf("late")];
	running.begin(early);
	running.keep(early, null);
	running.release(early);
	for (let s = 0; s < 3_600; s++) {
		clock.advance(1_000);
		await settled();
	}
	expect(running.find("early")).toBeDefined();
	away = false;
	clock.advance(30_000);
	await settled();
	expect(kept).toEqual(["early"]);
	expect(running.find("early")).toBeUndefined();
	away = true;
	running.begin(late);
	running.keep(late, null);
	await settled();
	away = false;
	await running.stop();
	expect(kept).toEqual(["early", "late"]);
});

test("an answer to keep is stored although many claims are being deleted", async () => {
	const clock = createManualClock();
	let away = true;
	const kept: string[] = [];
	const whileAway = async ({ id }: IdempotencyClaim) => {
		if (away) throw new Error("away");
		if (id === "paid") kept.push(id);
	};
	const running = createRunningClaims({
		claims: { ...claims, keep: whileAway, release: whileAway },
		clock,
		log: silentLog,
	});
	for (let nth = 0; nth < 11_000; nth++) running.takeBack(claimOf(`${nth}`));
	const paid = claimOf("paid");
	running.begin(paid);
	running.keep(paid, null);
	await settled();
	away = false;
	await running.stop();
	expect(kept).toEqual(["paid"]);
});

test("an Idempotency-Key that is claimed during its release belongs to the new request", async () => {
	const written = Promise.withResolvers<void>();
	const slow = { ...claims, release: () => written.promise };
	const running = createRunningClaims({ claims: slow, clock: systemClock, log: silentLog });
	const [first, second] = [claimOf("same"), { ...claimOf("same"), proof: "another" }];
	running.begin(first);
	const former = running.find("same")?.ended;
	running.release(first);
	running.begin(second);
	written.resolve();
	await former;
	expect(running.find("same")?.proof).toBe("another");
});
