import { expect, test } from "bun:test";
import { newPerson, PERSON_ENV } from "../console/person.ts";
import { withChat } from "../support/service.ts";

/** The sign-in library writes a row for each address and path. Invented paths must not reach it. */

const { service } = await withChat({
	env: { ...PERSON_ENV, GITHUB_CLIENT_ID: "client", GITHUB_CLIENT_SECRET: "secret" },
});
const REQUESTS = 300;
const ROWS_MAX = 5;
const PREFIXES = [
	"",
	"x/",
	"callback/",
	"callback/github/",
	"reset-password/",
	"magic-link/",
	"sign-in/",
	"get-session/",
];

async function rowsOf(address: string): Promise<number> {
	const [row] = await service.db.sql`select count(*)::integer as count from rate_limit where key like ${`${address}%`}`;
	return row?.count;
}

for (const prefix of PREFIXES)
	test(`invented paths at /api/auth/${prefix} get 404 and write no rows`, async () => {
		const stranger = newPerson(service);
		const statuses = new Set<number>();
		for (let nth = 0; nth < REQUESTS; nth += 1)
			statuses.add((await stranger.get(`/api/auth/${prefix}${crypto.randomUUID()}`)).status);
		statuses.add((await stranger.get(`/api/auth/${prefix}${"a".repeat(4_000)}`)).status);
		expect([[...statuses], await rowsOf(stranger.address)]).toEqual([[404], 0]);
	});

test("each served path has one row for each address, also with other queries and methods", async () => {
	const stranger = newPerson(service);
	for (let nth = 0; nth < REQUESTS; nth += 1) {
		await stranger.get(`/api/auth/callback/github?state=${crypto.randomUUID()}`);
		await stranger.send("POST", `/api/auth/reset-password?token=${crypto.randomUUID()}`, { newPassword: "x" });
	}
	expect(await rowsOf(stranger.address)).toBeLessThanOrEqual(ROWS_MAX);
});
