import { describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { pinRateCards, rateCardHistory } from "../../src/catalog/rate-cards.ts";
import { createStatements } from "../../src/db/statements.ts";
import { withDatabase } from "../support/database.ts";
import { ratesOf } from "./model-specs.ts";

const { sql, statements, url } = await withDatabase();

const clientOf = (url: string) =>
	createStatements(
		{ clock: systemClock, log: silentLog },
		{ url, connectionsMax: 1, statementDeadlineMs: 10_000, applicationName: "rate cards" },
	);

const versionsOf = async (model: string) =>
	(await sql<{ version: number }[]>`select version from rate_card where model = ${model} order by version`).map(
		(row) => row.version,
	);

describe("storing the rate cards of models", () => {
	test("adds a first version and finds it again", async () => {
		const first = (await pinRateCards(statements, [{ id: "a/b", rates: ratesOf(10) }])).get("a/b");
		const second = (await pinRateCards(statements, [{ id: "a/b", rates: ratesOf(10) }])).get("a/b");
		expect(first).toMatchObject({ id: "a/b@1", version: 1, ...ratesOf(10) });
		expect(second).toEqual(first);
		expect(Math.abs((first?.createdS ?? 0) - Date.now() / 1000)).toBeLessThan(60);
	});

	test("adds a new version for each change of a price", async () => {
		for (const input of [10, 20, 10, 10]) await pinRateCards(statements, [{ id: "changing", rates: ratesOf(input) }]);
		const history = await rateCardHistory(statements, "changing");
		expect(history.map(({ id, input }) => [id, input as number])).toEqual([
			["changing@3", 10],
			["changing@2", 20],
			["changing@1", 10],
		]);
	});

	test("keeps the time at which a model's first version was created", async () => {
		await pinRateCards(statements, [{ id: "old", rates: ratesOf(1) }]);
		await sql`update rate_card set created_at = '2020-01-01T00:00:00Z' where model = 'old'`;
		const pinned = await pinRateCards(statements, [{ id: "old", rates: ratesOf(2) }]);
		expect(pinned.get("old")).toMatchObject({ version: 2, createdS: Date.UTC(2020, 0, 1) / 1000 });
	});

	test("keeps the largest possible rates exactly", async () => {
		const rates = ratesOf(1_000_000_000_000);
		expect((await pinRateCards(statements, [{ id: "dear", rates }])).get("dear")).toMatchObject(rates);
	});

	test("gives instances that start at the same time the same version", async () => {
		const ids = Array.from({ length: 60 }, (_, index) => `together-${index}`);
		const clients = Array.from({ length: 4 }, () => clientOf(url));
		try {
			// Opens the connections first, so that the statements start at the same time.
			await Promise.all(clients.map((client) => client`select 1`));
			for (const input of [10, 20]) {
				const answers = await Promise.all(
					clients.map((client, index) => {
						const specs = ids.map((id) => ({ id, rates: ratesOf(input) }));
						return pinRateCards(client, index % 2 === 0 ? specs : specs.toReversed());
					}),
				);
				const byId = (answer: (typeof answers)[number] | undefined) => Object.fromEntries(answer ?? []);
				for (const answer of answers) expect(byId(answer)).toEqual(byId(answers[0]));
			}
			for (const id of ids) expect(await versionsOf(id)).toEqual([1, 2]);
		} finally {
			await Promise.all(clients.map((client) => client.end()));
		}
	});

	test("gives instances with different prices different versions", async () => {
		const clients = Array.from({ length: 4 }, () => clientOf(url));
		try {
			await Promise.all(clients.map((client) => client`select 1`));
			const answers = await Promise.all(
				clients.map((client, index) => pinRateCards(client, [{ id: "split", rates: ratesOf(index + 1) }])),
			);
			expect(answers.map((answer) => answer.get("split")?.input as number)).toEqual([1, 2, 3, 4]);
			expect(new Set(answers.map((answer) => answer.get("split")?.id)).size).toBe(4);
			expect(await versionsOf("split")).toEqual([1, 2, 3, 4]);
		} finally {
			await Promise.all(clients.map((client) => client.end()));
		}
	});
});
