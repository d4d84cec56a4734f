import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import { writtenTerms } from "../billing/price-agreements.ts";
import type { Parts } from "../console/console-deps.ts";
import { listPromotions, readBalance } from "../console/credit/credit.ts";
import { refuseOwnAccount } from "../console/operator/operator-interest.ts";
import type { Statements } from "../db/statements.ts";
import type { AccountRecord } from "../keys/account-admin.ts";
import { checkNewAccount, createAccount, findAccount, listAccounts, updateAccount } from "../keys/account-admin.ts";
import { addUsd, ZERO_USD } from "../money/nano-usd.ts";
import { toAnswer } from "./management-answer.ts";
import { claimId, listJson, type ManagementAnswer, type ManagementCall, readPage, toFence } from "./management-call.ts";
import { MANAGEMENT_ANSWERS } from "./management-schemas.ts";

/** Operations on accounts. Creation works as on the command line, suspension as on the operators' pages. */
export function accountAnswers(parts: Parts<"statements" | "keyMaker" | "clock" | "fence">) {
	const { statements } = parts;

	const read = (id: string) => getAccount(statements, id);

	return {
		async listAccounts(call: ManagementCall): Promise<ManagementAnswer> {
			const { email } = call.query;
			if (email !== undefined) {
				const found = await findAccount(statements, email);
				return listJson(found === null || found.email !== email.toLowerCase() ? [] : [accountView(found)], null);
			}
			const { items, next } = await listAccounts(statements, readPage(call));
			return listJson(items.map(accountView), next);
		},
		readAccount: async (call: ManagementCall) => accountView(await read(call.id)),
		async readCredit(call: ManagementCall): Promise<ManagementAnswer> {
			const { id } = await read(call.id);
			const promotions = await listPromotions(statements, id);
			const promotionalNanoUsd = promotions.reduce((sum, { leftNanoUsd }) => addUsd(sum, leftNanoUsd), ZERO_USD);
			const record = { ...(await readBalance(statements, id)), promotionalNanoUsd };
			return toAnswer(MANAGEMENT_ANSWERS.ManagementCredit, record, { account_id: id });
		},
		async createAccount(call: ManagementCall<"createAccount">): Promise<ManagementAnswer> {
			const { email, name } = call.body;
			const account = { email, ...(name === undefined ? {} : { name }), vouched: true };
			checkNewAccount(account);
			const planned = await claimId(parts, call, newId("acc"));
			const act = call.noted("account.create", { email: email.trim().toLowerCase() });
			const { id } = await createAccount(statements, account, planned, act);
			return accountView(await read(id));
		},
		async updateAccount(call: ManagementCall<"updateAccount">): Promise<ManagementAnswer> {
			const { reason, time_zone: timeZone, tokens_per_minute: tokensPerMinute, ...given } = call.body;
			const changes = {
				...given,
				...(timeZone === undefined ? {} : { timeZone }),
				...(tokensPerMinute === undefined ? {} : { tokensPerMinute }),
			};
			const { name, state, tags } = changes;
			if (Object.keys(changes).length === 0) throw new Fault("invalid_request", "The body has no field to change.");
			if (state !== undefined && reason === undefined)
				throw new Fault("invalid_request", "A change of state needs a `reason`.", { param: "reason" });
			const { id } = await read(call.id);
			if (state !== undefined || tags !== undefined || tokensPerMinute !== undefined)
				await refuseOwnAccount(statements, call.caller.madeBy, id);
			// The audit log uses the same action names as for the operators' pages.
			const ended = state === "suspended" ? "account.suspend" : "account.unsuspend";
			const ofState = state === undefined ? null : call.noted(ended, { reason });
			const acts = [
				...(name === undefined ? [] : [call.noted("account.rename", { name })]),
				...(timeZone === undefined ? [] : [call.noted("account.time_zone", { timeZone })]),
				...(tags === undefined && tokensPerMinute === undefined
					? []
					: [call.noted("account.terms", { tags, tokensPerMinute })]),
				...(ofState === null ? [] : [ofState]),
			];
			const { entry } = await updateAccount(statements, id, changes, call.match, acts);
			const fence = entry === null ? null : await parts.fence(call, entry, ofState);
			return { ...accountView(await read(id)), in_force: fence === null ? null : toFence(fence) };
		},
	};
}

/** Returns an account by id. Fault `not_found`. */
export async function getAccount(statements: Statements, id: string): Promise<AccountRecord> {
	// A mail address is not an id. Callers find an account by its address with a filter of the list.
	const account = id.startsWith("acc_") ? await findAccount(statements, id) : null;
	if (account === null) throw new Fault("not_found", "There is no account {id}.", { values: { id } });
	return account;
}

const accountView = (account: AccountRecord) =>
	toAnswer(MANAGEMENT_ANSWERS.ManagementAccount, account, { prices: account.agreements.map(writtenTerms) });
