import type { BetterAuthOptions } from "better-auth";
import type { DBAdapter } from "better-auth/adapters";
import { type DB, drizzleAdapter } from "better-auth/adapters/drizzle";
import { sql } from "drizzle-orm";
import type { Transactional } from "../../db/transactional.ts";
import * as tables from "./user.sql.ts";

type Adapter = DBAdapter<BetterAuthOptions>;
type Asked = Parameters<Adapter["update"]>[0];
type Transaction = Parameters<Parameters<Transactional["transaction"]>[0]>[0];
type Found = Record<string, unknown> & { id: string; userId?: string };

const SCHEMA = {
	user: tables.consoleUser,
	session: tables.session,
	account: tables.authAccount,
	verification: tables.verification,
	rateLimit: tables.rateLimit,
	twoFactor: tables.twoFactor,
};

/**
 * The sign-in library's database adapter with two changes. Logs of failed queries do not contain the queries' values. A
 * new password or second factor ends all sessions in the same transaction: after a crash between two transactions an
 * intruder would stay signed in.
 */
export function authDatabase(tx: Transactional) {
	const adapterOn = (database: Transactional | Transaction, options: BetterAuthOptions): Adapter =>
		drizzleAdapter(database as unknown as DB, { provider: "pg", schema: SCHEMA })(options);
	return (options: BetterAuthOptions): Adapter => {
		const adapter = adapterOn(tx, options);
		const update = (asked: Asked) => {
			const follow = followingOf(asked);
			if (follow === undefined) return adapter.update(asked);
			return tx.transaction(async (part) => {
				const changed = await adapterOn(part, options).update<Found>(asked);
				if (changed !== null) await follow(part, changed);
				return changed;
			});
		};
		return {
			...adapter,
			findOne: (asked) => findWith(adapter, asked) as never,
			update: (asked) => update(asked) as never,
		};
	};
}

/** Returns the statements that run in the transaction of the change; undefined if there are none. */
function followingOf({ model, update }: Asked): ((part: Transaction, changed: Found) => Promise<void>) | undefined {
	if (model === "account" && "password" in update) return (part, { userId = "" }) => endBegun(part, userId);
	if (model !== "user" || !("twoFactorEnabled" in update)) return undefined;
	if (update.twoFactorEnabled !== true)
		// Deletes the row: at the next set-up the library would treat it as a confirmed factor.
		return async (part, { id }) => void (await part.execute(sql`delete from two_factor where user_id = ${id}`));
	return async (part, { id }) => {
		// Marks the factor as confirmed: one that is required but unconfirmed would lock the person out.
		await part.execute(sql`update two_factor set verified = true where user_id = ${id}`);
		await endBegun(part, id);
	};
}

/** Ends the person's sessions, password reset links, unfinished sign-ins and trusted browsers. */
async function endBegun(part: Transaction, userId: string): Promise<void> {
	await part.execute(sql`delete from session where user_id = ${userId}`);
	await part.execute(sql`delete from verification where value = ${userId}`);
}

async function findWith(adapter: Adapter, asked: Parameters<Adapter["findOne"]>[0]): Promise<unknown> {
	const { join = {}, ...alone } = asked;
	const { user, account, ...others } = join;
	if (Object.keys(others).length > 0) return adapter.findOne(asked);
	const found = await adapter.findOne<Found>(alone);
	if (found === null) return null;
	const by = (field: string, value: string | undefined) => [{ field, value: value ?? null }];
	return {
		...found,
		...(user && { user: await adapter.findOne({ model: "user", where: by("id", found.userId) }) }),
		...(account && { account: await adapter.findMany({ model: "account", where: by("userId", found.id) }) }),
	};
}
