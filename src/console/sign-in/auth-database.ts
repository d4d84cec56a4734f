import type { BetterAuthOptions } from "better-auth";
import type { DBAdapter } from "better-auth/adapters";
import { type DB, drizzleAdapter } from "better-auth/adapters/drizzle";
import type { Transactional } from "../../db/transactional.ts";
import * as tables from "./user.sql.ts";

type Adapter = DBAdapter<BetterAuthOptions>;
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
 * The library's own, but for what it looks for together with something else: of a second look that fails it writes the error to
 * the terminal, with the statement and its values, beside our log.
 */
export function authDatabase(tx: Transactional) {
	const adapterOf = drizzleAdapter(tx as unknown as DB, { provider: "pg", schema: SCHEMA });
	return (options: BetterAuthOptions): Adapter => {
		const adapter = adapterOf(options);
		return { ...adapter, findOne: (asked) => findWith(adapter, asked) as never };
	};
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
