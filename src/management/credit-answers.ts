import { Fault } from "../base/fault.ts";
import { type AdjustmentState, bookAdjustment, checkAdjustment } from "../billing/adjustments.ts";
import { checkTerms, writtenTerms } from "../billing/price-agreements.ts";
import { type Parts, parseAmount } from "../console/console-deps.ts";
import { type AdjustmentRow, listAdjustments, priceFence } from "../console/operator/operator-adjustments.ts";
import { refuseOwnAccount } from "../console/operator/operator-interest.ts";
import { idOf, pageFrom } from "../db/page.ts";
import { derivedHex } from "../keys/secret.ts";
import { ZERO_USD } from "../money/nano-usd.ts";
import { toAnswer } from "./management-answer.ts";
import { listJson, type ManagementAnswer, type ManagementCall, readPage, toFence } from "./management-call.ts";
import { MANAGEMENT_ANSWERS } from "./management-schemas.ts";

/**
 * Credit adjustments. A key acts for the operator who created it, so its adjustments count as that operator's. It can
 * neither confirm adjustments nor change an account in which the operator has an interest.
 */
export function creditAnswers(parts: Parts<"statements" | "tx" | "keyMaker" | "config" | "clock" | "fence">) {
	const { statements, tx, keyMaker, config, clock } = parts;

	async function read(id: string): Promise<ManagementAnswer> {
		const [row] = await listAdjustments(statements, { state: null, id }, { asked: 1, after: null });
		if (row === undefined) throw new Fault("not_found", "There is no adjustment {id}.", { values: { id } });
		return adjustmentView(row);
	}

	/** Returns fields that all adjustments of a call share. Fault `invalid_request` without a token. */
	function askedBy({ caller, connection, token }: ManagementCall) {
		if (token === null)
			throw new Fault("invalid_request", "An adjustment needs the header `Idempotency-Key` or a `client_token`.", {
				param: "client_token",
			});
		const idempotencyKey = derivedHex(keyMaker.digest, "adjustment", caller.id, token).slice(0, 64);
		return { idempotencyKey, operatorId: caller.madeBy, actor: caller.id, ip: connection.address };
	}

	return {
		async listAdjustments(call: ManagementCall): Promise<ManagementAnswer> {
			const state = (call.query.state ?? null) as AdjustmentState | null;
			const filter = { state, accountId: call.query.account_id ?? null };
			const { items, next } = await pageFrom(readPage(call), (page) => listAdjustments(statements, filter, page), idOf);
			return listJson(items.map(adjustmentView), next);
		},
		readAdjustment: (call: ManagementCall) => read(call.id),
		async createAdjustment(call: ManagementCall<"createAdjustment">): Promise<ManagementAnswer> {
			const { account_id: accountId, amount_usd: usd, reason, kind, last_day: lastDay = null } = call.body;
			const by = askedBy(call);
			const amount = parseAmount(usd, "amount_usd", true);
			if (kind !== "promotion" && lastDay !== null)
				throw new Fault("invalid_request", "`last_day` is for promotional credit (`kind: promotion`).", {
					param: "last_day",
				});
			const promotion = kind === "promotion" ? { lastDay } : undefined;
			checkAdjustment({ amount, promotion }, { amount: "amount_usd", lastDay: "last_day" }, clock.wallMs());
			await refuseOwnAccount(statements, call.caller.madeBy, accountId);
			const made = await bookAdjustment(tx, { accountId, amount, promotion, reason, ...by }, config.topUpSecondLook);
			return read(made.id);
		},
		async createPrices(call: ManagementCall<"createPrices">): Promise<ManagementAnswer> {
			const { reason, model = null, discount = null, rates = null, from = null } = call.body;
			const by = askedBy(call);
			await refuseOwnAccount(statements, call.caller.madeBy, call.id);
			const price = await checkTerms(statements, { model, discount, rates, from }, clock.wallMs());
			const asked = { accountId: call.id, amount: ZERO_USD, price, reason, ...by };
			const made = await bookAdjustment(tx, asked, config.priceSecondLook);
			const fence = await priceFence(parts, call, made);
			return { ...(await read(made.id)), in_force: fence && toFence(fence) };
		},
	};
}

const adjustmentView = (row: AdjustmentRow) =>
	toAnswer(
		MANAGEMENT_ANSWERS.ManagementAdjustment,
		{ ...row, createdAtMs: row.firstAtMs },
		{ asked_by: row.firstBy, prices: row.terms && writtenTerms(row.terms) },
	);
