import { Elysia } from "elysia";
import type { Parts } from "./console-deps.ts";
import { ACCOUNT_QUERY } from "./page-query.ts";

/** Adds routes of the selected account. Each handler gets `member`, whose right for the route `ROUTE_RULES` names. */
export function accountRoutes<const Prefix extends string = "">(
	{ sessions }: Parts<"sessions">,
	name: string,
	prefix?: Prefix,
) {
	return new Elysia<Prefix>({ name, prefix: prefix as Prefix })
		.guard(ACCOUNT_QUERY)
		.resolve(({ request }) => ({ member: sessions.account(request) }));
}
