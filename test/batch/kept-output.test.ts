import { expect, test } from "bun:test";
import { withDatabase } from "../support/database.ts";
import { chatLine } from "./batch-service.ts";
import { createCrashWorld, keyOwner } from "./crash-world.ts";

/** The lifetime of an output file starts when its owner can see the file. */

const db = await withDatabase();
const owner = await keyOwner(db);
const HOUR_S = 3_600;
const CALLS_MAX = 60;

test("a batch's output file does not expire while no runner works on the batch", async () => {
	for (const after of [false, true]) {
		for (let diesAt = 1; ; diesAt += 1) {
			const world = createCrashWorld(db, owner, () => 0.5);
			const id = await world.create([chatLine("a line")], { outputExpiresS: HOUR_S });
			const life = world.live({ diesAt, after });
			await life.run(id);
			if (!life.isOver()) break;
			expect(diesAt).toBeLessThan(CALLS_MAX);
			if ((await world.find(id)).state === "completed") continue;
			await db.sql`update stored_file set expires_at = expires_at - interval '2 hours' where account_id = ${owner.accountId}`;
			await world.files.sweep();
			await world.live().run(id);
			const batch = await world.find(id);
			const lines = [...(await world.lines(batch.outputFileId)), ...(await world.lines(batch.errorFileId))];
			const named = lines.map(({ custom_id }) => custom_id);
			expect({ after, diesAt, state: batch.state, named }).toEqual({
				...{ after, diesAt, state: "completed", named: ["a line"] },
			});
			const [file] = await db.sql`
				select extract(epoch from expires_at - now())::float8 as left from stored_file where id = ${batch.outputFileId ?? batch.errorFileId}`;
			expect(Math.abs(file?.left - HOUR_S)).toBeLessThan(60);
		}
	}
});
