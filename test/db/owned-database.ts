import { afterEach, beforeEach } from "bun:test";
import postgres from "postgres";
import { createEmptyDatabase } from "../support/database.ts";

/** Gives each test a database whose owner may change its settings: an empty one, or the result of `make`. */
export function withOwnedDatabase(make = createEmptyDatabase) {
	let database: Awaited<ReturnType<typeof createEmptyDatabase>>;
	const ended: (() => unknown)[] = [];
	beforeEach(async () => {
		database = await make();
	});
	afterEach(async () => {
		for (const end of ended.splice(0).reverse()) await end();
		await database.drop();
	});
	const owned = {
		get url(): string {
			return database.url;
		},
		open(url: string): postgres.Sql {
			const client = postgres(url, { max: 1, onnotice: () => {}, fetch_types: false });
			ended.push(() => client.end());
			return client;
		},
		/** Changes settings (`name = value`) for all later connections. */
		async set(...settings: readonly string[]): Promise<void> {
			const name = new URL(database.url).pathname.slice(1);
			for (const setting of settings) await owned.open(database.url).unsafe(`alter database ${name} set ${setting}`);
		},
		/** Creates a role that can only sign in and is dropped after the test. Returns its URL and its quoted name. */
		async role(
			name = `r${crypto.randomUUID().replaceAll("-", "")}`,
		): Promise<{ readonly url: string; readonly quoted: string }> {
			const quoted = `"${name.replaceAll('"', '""')}"`;
			const client = owned.open(database.url);
			await client.unsafe(`create role ${quoted} login password 'p'`);
			owned.atTestEnd(() => client.unsafe(`drop owned by ${quoted} cascade; drop role ${quoted}`));
			return { url: Object.assign(new URL(database.url), { username: name, password: "p" }).href, quoted };
		},
		/** Registers a clean-up that runs after the test; the newest clean-up runs first. */
		atTestEnd: (end: () => unknown) => void ended.push(end),
	};
	return owned;
}
