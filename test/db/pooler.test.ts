import { describe, expect, test } from "bun:test";
import postgres from "postgres";
import { isPooledByTransaction, type PoolerSession } from "../../src/db/new-client.ts";
import { withDatabase } from "../support/database.ts";

const db = await withDatabase();

describe("a connection pooler", () => {
	/** Simulates clients of a pooler with `size` server sessions, which assigns the session used last or first. */
	function pooled(size: number, order: "last" | "first"): { session: PoolerSession; end(): Promise<void> } {
		const free = Array.from({ length: size }, () => postgres(db.url, { max: 1, onnotice: () => {} }));
		return {
			async session(statement) {
				const backend = (order === "last" ? free.pop() : free.shift()) as postgres.Sql;
				try {
					return [...(await backend.unsafe(statement))];
				} finally {
					free.push(backend);
				}
			},
			end: async () => void (await Promise.all(free.map((backend) => backend.end()))),
		};
	}

	test("is detected in transaction mode, whichever sessions it assigns", async () => {
		for (const size of [1, 2, 3, 8]) {
			for (const order of ["last", "first"] as const) {
				const { session, end } = pooled(size, order);
				expect({ size, order, pooled: await isPooledByTransaction(session, session) }).toEqual({
					size,
					order,
					pooled: true,
				});
				await end();
			}
		}
	});

	test("is not detected in session mode", async () => {
		const [a, b] = [pooled(1, "last"), pooled(1, "last")];
		expect(await isPooledByTransaction(a.session, b.session)).toBe(false);
		await Promise.all([a.end(), b.end()]);
	});
});
