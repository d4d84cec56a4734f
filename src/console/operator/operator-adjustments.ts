import { Elysia, t } from "elysia";
import {
	type Adjustment,
	type AdjustmentState,
	bookAdjustment,
	checkAdjustment,
	confirmAdjustment,
	getAdjustment,
	rejectAdjustment,
} from "../../billing/adjustments.ts";
import { checkTerms } from "../../billing/price-agreements.ts";
import { newestControlEntry } from "../../cluster/control-log.ts";
import { idOf, pageFrom } from "../../db/page.ts";
import { type Statements, toView } from "../../db/statements.ts";
import { ZERO_USD } from "../../money/nano-usd.ts";
import { PAGE_QUERY, type Parts, parseAmount, REASON_FIELD, USD_FIELD } from "../console-deps.ts";
import type { Operator } from "../console-session.ts";
import { readBalance } from "../credit/credit.ts";
import type { AuditContext, Fence } from "../keys/fence-view.ts";
import { refuseOwnAccount } from "./operator-interest.ts";

const STATE = t.Union([t.Literal("pending"), t.Literal("booked"), t.Literal("rejected")]);

export interface AdjustmentRow extends Omit<Adjustment, "idempotencyKey" | "secondAtMs"> {
	readonly accountEmail: string;
}

export async function listAdjustments(
	statements: Statements,
	{
		state,
		accountId = null,
		id = null,
	}: { readonly state: AdjustmentState | null; readonly accountId?: string | null; readonly id?: string | null },
	page: { asked: number; after: string | null },
): Promise<AdjustmentRow[]> {
	const rows = await statements<object>`
		select c.id, c.account_id, a.email as account_email, c.amount_nano_usd, c.kind, c.last_day::text, c.terms, c.reason, c.state, c.first_at,
			coalesce(f.email, c.first_by) as first_by, coalesce(s.email, c.second_by) as second_by
		from credit_adjustment c join account a on a.id = c.account_id
			left join console_user f on f.id = c.first_by left join console_user s on s.id = c.second_by
		where (${state}::text is null or c.state = ${state}::text) and (${accountId}::text is null or c.account_id = ${accountId}::text)
			and (${id}::text is null or c.id = ${id}::text) and (${page.after}::text is null or c.id < ${page.after}::text)
		order by c.id desc limit ${page.asked}`;
	return rows.map(toView<AdjustmentRow>);
}

/** Waits until all instances have the booked prices; null if no price was booked. */
export async function priceFence(
	{ statements, fence }: Parts<"statements" | "fence">,
	actor: Pick<AuditContext, "connection">,
	{ kind, state }: Pick<Adjustment, "kind" | "state">,
): Promise<Fence | null> {
	return kind === "price" && state === "booked" ? fence(actor, await newestControlEntry(statements)) : null;
}

const TERM = t.Nullable(t.String({ minLength: 1, maxLength: 200 }));
const RATES = t.Record(t.String({ maxLength: 20 }), t.String({ maxLength: 30 }));

export function adjustmentRoutes(parts: Parts<"statements" | "tx" | "config" | "sessions" | "clock" | "fence">) {
	const { statements, tx, sessions, config, clock } = parts;
	const decision = async ({ userId, connection }: Operator, id: string) => {
		await refuseOwnAccount(statements, userId, (await getAdjustment(statements, id)).accountId);
		return { id, operatorId: userId, ip: connection.address };
	};
	return new Elysia({ name: "console-operator-adjustments" })
		.resolve(({ request }) => ({ operator: sessions.operator(request) }))
		.post(
			"/accounts/:id/adjust",
			async ({ operator, params, body }) => {
				const { userId, connection } = operator;
				await refuseOwnAccount(statements, userId, params.id);
				const amount = body.price ? ZERO_USD : parseAmount(body.usd, "usd", true);
				const { promotion } = body;
				const price = body.price && (await checkTerms(statements, body.price, clock.wallMs()));
				if (!price) checkAdjustment({ amount, promotion }, { amount: "usd", lastDay: "lastDay" }, clock.wallMs());
				const asked = {
					...{ accountId: params.id, amount, promotion, price, reason: body.reason },
					idempotencyKey: body.idempotencyKey.toLowerCase(),
					...{ operatorId: userId, ip: connection.address },
				};
				const made = await bookAdjustment(tx, asked, price ? config.priceSecondLook : config.topUpSecondLook);
				const fence = await priceFence(parts, operator, made);
				return { balance: await readBalance(statements, params.id), secondLookNeeded: made.state === "pending", fence };
			},
			{
				body: t.Object({
					usd: USD_FIELD,
					reason: REASON_FIELD,
					promotion: t.Optional(t.Object({ lastDay: t.Nullable(t.String({ maxLength: 40 })) })),
					price: t.Optional(t.Object({ model: TERM, discount: TERM, from: TERM, rates: t.Nullable(RATES) })),
					idempotencyKey: t.String({ pattern: "^[0-9a-fA-F-]{32,36}$" }),
				}),
			},
		)
		.get(
			"/adjustments",
			({ query }) =>
				pageFrom(query, (page) => listAdjustments(statements, { state: query.state ?? "pending" }, page), idOf),
			{ query: t.Object({ ...PAGE_QUERY, state: t.Optional(STATE) }) },
		)
		.post("/adjustments/:id/confirm", async ({ operator, params }) => {
			const made = await confirmAdjustment(tx, await decision(operator, params.id));
			return { state: made.state, fence: await priceFence(parts, operator, made) };
		})
		.post(
			"/adjustments/:id/reject",
			async ({ operator, params, body }) => {
				const asked = await decision(operator, params.id);
				return { state: (await rejectAdjustment(tx, { ...asked, reason: body.reason })).state };
			},
			{ body: t.Object({ reason: REASON_FIELD }) },
		);
}
