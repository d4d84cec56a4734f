import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import type { ConsoleParts } from "../console/console-deps.ts";
import { fenceOf } from "../console/keys/fence-view.ts";
import { refuseOwnAccount } from "../console/operator/operator-interest.ts";
import type { Statements } from "../db/statements.ts";
import type { AccountRecord } from "../keys/account-admin.ts";
import { checkNewAccount, createAccount, findAccount, listAccounts, updateAccount } from "../keys/account-admin.ts";
import { accountJson } from "../keys/account-json.ts";
import { accountBalance } from "../ledger/balance.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { noteOutcome } from "../ops/audit.ts";
import { claimed } from "./claimed.ts";
import type { ManagementAnswer, ManagementCall } from "./management-call.ts";
import { bodyOf, inForceOf, listOf, notedAct, pageOf } from "./management-call.ts";

/** Accounts: made as the command makes them, suspended as operators' pages do it. */
export function accountAnswers(parts: ConsoleParts) {
	const { statements } = parts;

	const read = (id: string) => accountOf(statements, id);

	/** What was changed stands in the audit log under the names that the console uses. */
	function changesNoted(call: ManagementCall) {
		const { name, state, time_zone: timeZone, reason } = bodyOf(call, "ManagementAccountUpdate");
		return {
			rename: name === undefined ? null : notedAct(call, "account.rename", { name }),
			timeZone: timeZone === undefined ? null : notedAct(call, "account.time_zone", { timeZone }),
			state:
				state === undefined
					? null
					: notedAct(call, state === "suspended" ? "account.suspend" : "account.unsuspend", { reason }),
		};
	}

	return {
		async listAccounts(call: ManagementCall): Promise<ManagementAnswer> {
			const { shown, after } = pageOf(call);
			const { email } = call.query;
			if (email !== undefined) {
				const found = await findAccount(statements, email);
				return listOf(found === null || found.email !== email.toLowerCase() ? [] : [accountView(found)], null);
			}
			const { items, next } = await listAccounts(statements, { limit: shown, after });
			return listOf(items.map(accountView), next);
		},
		readAccount: async (call: ManagementCall) => accountView(await read(call.id)),
		async readCredit(call: ManagementCall): Promise<ManagementAnswer> {
			const { id } = await read(call.id);
			const { balance, held, available, spent } = await accountBalance(statements, id);
			return {
				object: "credit",
				account_id: id,
				balance_usd: formatUsd(balance),
				held_usd: formatUsd(held),
				available_usd: formatUsd(available),
				spent_usd: formatUsd(spent),
			};
		},
		async createAccount(call: ManagementCall): Promise<ManagementAnswer> {
			const { email, name } = bodyOf(call, "ManagementAccountCreate");
			const account = { email, ...(name === undefined ? {} : { name }), vouched: true };
			checkNewAccount(account);
			const planned = await claimed(parts, call, newId("acc"));
			const act = notedAct(call, "account.create", { email: email.trim().toLowerCase() });
			const { id } = await createAccount(statements, account, planned, act);
			return accountView(await read(id));
		},
		async updateAccount(call: ManagementCall): Promise<ManagementAnswer> {
			const { name, state, time_zone: timeZone, reason } = bodyOf(call, "ManagementAccountUpdate");
			if (name === undefined && state === undefined && timeZone === undefined)
				throw new Fault("invalid_request", "Nothing to change was given.");
			if (state !== undefined && reason === undefined)
				throw new Fault("invalid_request", "A change of state needs a `reason`.", { param: "reason" });
			const { id } = await read(call.id);
			if (state !== undefined) await refuseOwnAccount(statements, call.caller.madeBy, id);
			const changes = {
				...(name === undefined ? {} : { name }),
				...(state === undefined ? {} : { state }),
				...(timeZone === undefined ? {} : { timeZone }),
			};
			const acts = changesNoted(call);
			const lines = Object.values(acts).filter((act) => act !== null);
			const { entry } = await updateAccount(statements, id, changes, call.match, lines);
			const fence = entry === null ? null : await fenceOf(parts, call.connection, entry);
			if (acts.state !== null && fence !== null) await noteOutcome(statements, acts.state, fence);
			return { ...accountView(await read(id)), in_force: fence === null ? null : inForceOf(fence) };
		},
	};
}

/** Fault not_found. */
export async function accountOf(statements: Statements, id: string): Promise<AccountRecord> {
	// An address is no name of an account here: it can be looked for in the list.
	const account = id.startsWith("acc_") ? await findAccount(statements, id) : null;
	if (account === null) throw new Fault("not_found", `There is no account ${id}.`);
	return account;
}

const accountView = (account: AccountRecord): ManagementAnswer => ({
	object: "account",
	...accountJson(account),
	etag: account.etag,
});
