import { edenGC, fullGC, heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import type { Claim, Claims } from "../../../src/gateway/idempotency/claims.ts";
import { createRunning } from "../../../src/gateway/idempotency/running.ts";

const claims: Claims = {
	claim: async () => ({ state: "new" }),
	keep: async () => {},
	release: async () => {},
};
const claimOf = (id: string): Claim => ({ id, accountId: "a", proof: `proof ${id}`, requestUuid: id });

test("a young collection frees requests with an Idempotency-Key that have ended", async () => {
	const running = createRunning({ claims, clock: systemClock, log: silentLog });
	const open: Claim[] = [];
	fullGC();
	const before = heapStats().objectTypeCounts.Promise ?? 0;
	for (let nth = 0; nth < 20_000; nth++) {
		const claim = claimOf(`${nth}`);
		running.begin(claim);
		open.push(claim);
		if (open.length > 32) running.keep(open.shift() as Claim, null);
		if (nth % 100 === 0) await Bun.sleep(0);
		if (nth % 4_000 === 0) edenGC();
	}
	for (const claim of open) running.release(claim);
	await running.stop();
	edenGC();
	expect((heapStats().objectTypeCounts.Promise ?? 0) - before).toBeLessThan(2_000);
});

test("a key that is claimed anew while its former outcome is written down is the new request's", async () => {
	const written = Promise.withResolvers<void>();
	const slow = { ...claims, release: () => written.promise };
	const running = createRunning({ claims: slow, clock: systemClock, log: silentLog });
	const [first, second] = [claimOf("same"), { ...claimOf("same"), proof: "another" }];
	running.begin(first);
	const former = running.find("same")?.ended;
	running.release(first);
	running.begin(second);
	written.resolve();
	await former;
	expect(running.find("same")?.proof).toBe("another");
});
