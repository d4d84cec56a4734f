import { expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import type { Statements } from "../../../src/db/statements.ts";
import { createUsageSums } from "../../../src/gateway/lookups/usage-sums.ts";

test("a page that begins on a day that does not exist is no page: the database is not asked, and not said to be away", async () => {
	let asked = 0;
	const statements = (async () => {
		asked += 1;
		return [];
	}) as unknown as Statements;
	const sums = createUsageSums({ statements, clock: systemClock });
	const page = (day: string) => {
		const after = Buffer.from(JSON.stringify([day, "", "", ""])).toString("base64url");
		return sums(new Request(`http://test.example/v1/usage?after=${after}`), "acc", "req_1");
	};
	for (const day of ["2026-02-30", "2026-13-01", "0000-00-00"])
		await expect(page(day)).rejects.toMatchObject({ code: "invalid_request", param: "after" });
	expect(asked).toBe(0);
	for (const day of ["", "2026-02-28"]) expect((await page(day)).status).toBe(200);
});
