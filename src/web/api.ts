import type { Language } from "../base/language.ts";
import type { Role } from "../console/views.ts";
import { client, unwrap } from "./client.ts";
import { omitUndefined, queryText, sendRequest } from "./http.ts";
import type { NoticeChanges } from "./notice-changes.ts";

/** Calls of the console's API. Functions about an account take the account's id first. */

const BASE = "/api/console";
const part = encodeURIComponent;
type After = string | null;

/** Settings of a key or project in a request; null removes a setting. */
export type KeySettingsInput = Omit<Parameters<typeof client.keys.post>[0], "token">;

type Filter<Asked extends { query?: object } | undefined> = Nullable<NonNullable<NonNullable<Asked>["query"]>>;
type Nullable<T> = { readonly [K in Exclude<keyof T, "account" | "after" | "limit">]?: T[K] | null | undefined };

/** Filter of the request log. Only the log has refused requests, because they caused no usage. */
export type LogFilter = Filter<Parameters<typeof client.requests.get>[0]>;
export type UsageFilter = Filter<Parameters<typeof client.usage.get>[0]>;

export type CompanyInput = Parameters<(typeof client)["company-sign-in"]["put"]>[0];

const of = <More extends object = object>(account: string, more: More = {} as More) => ({
	query: { account, ...omitUndefined(more) },
});

/** Loads all pages of the list of members, in the order in which they joined. */
async function allMembers(account: string) {
	const pageBehind = (after: After) => unwrap(client.members.get(of(account, { after })));
	const { invitations, ...first } = await pageBehind(null);
	const items = [...first.items];
	for (let { next } = first; next !== null; ) {
		const page = await pageBehind(next);
		items.push(...page.items);
		next = page.next;
	}
	return { items: items.sort((a, b) => a.joinedAtMs - b.joinedAtMs), invitations };
}

export const api = {
	config: () => unwrap(client.public.config.get()),
	models: () => unwrap(client.public.models.get()),
	model: (id: string) => unwrap(client.public.model.get({ query: { id } })),
	outbox: (email: string) => unwrap(client.public.outbox.get({ query: { email } })),

	me: (account: string | null) => unwrap(client.me.get({ query: omitUndefined({ account }) })),
	sessions: () => unwrap(client.sessions.get()),
	revokeSession: (id: string) => unwrap(client.sessions({ id }).delete()),
	passkeys: () => unwrap(client.passkeys.get()),
	removePasskey: (id: string) => unwrap(client.passkeys({ id }).delete()),
	setLanguage: (language: Language) => unwrap(client.language.put({ language })),
	acceptTerms: (version: string) => unwrap(client.terms.post({ version })),
	reauthenticate: (password: string) => unwrap(client.reauthenticate.post({ password })),
	revokeOtherSessions: () => unwrap(client.sessions["revoke-others"].post({})),
	changeAccount: (account: string, changes: { name?: string; timeZone?: string }) =>
		unwrap(client.account.patch(changes, of(account))),
	members: allMembers,
	invite: (account: string, asked: { email: string; role: Role }, token: string) =>
		unwrap(client.invitations.post({ ...asked, token }, of(account))),
	withdrawInvitation: (account: string, id: string) =>
		unwrap(client.invitations({ id }).delete(undefined, of(account))),
	acceptInvitation: (token: string) => unwrap(client.invitations.accept.post({ token })),
	memberKeys: (account: string, userId: string) => unwrap(client.members({ userId }).keys.get(of(account))),
	changeRole: (account: string, userId: string, role: Role, keys: "keep" | "revoke" | null) =>
		unwrap(client.members({ userId }).patch({ role }, of(account, { keys }))),
	removeMember: (account: string, userId: string, keys: "keep" | "revoke") =>
		unwrap(client.members({ userId }).delete(undefined, of(account, { keys }))),
	companySignIn: (account: string) => unwrap(client["company-sign-in"].get(of(account))),
	setCompanySignIn: (account: string, input: CompanyInput) => unwrap(client["company-sign-in"].put(input, of(account))),
	verifyCompany: (account: string) => unwrap(client["company-sign-in"].verify.post({}, of(account))),
	removeCompany: (account: string) => unwrap(client["company-sign-in"].delete(undefined, of(account))),
	setAlert: (account: string, usd: string | null) => unwrap(client.alert.put({ usd }, of(account))),

	overview: (account: string) => unwrap(client.overview.get(of(account))),
	liveAddress: (topic: "overview" | "operator", account: string | null) =>
		`${BASE}/live${queryText({ topics: topic, account })}`,

	keys: (account: string, after: After = null, project: string | null = null) =>
		unwrap(client.keys.get(of(account, { after, project, limit: 100 }))),
	key: (account: string, id: string) => unwrap(client.keys({ id }).get(of(account))),
	createKey: (account: string, input: KeySettingsInput, token: string) =>
		unwrap(client.keys.post({ ...input, token }, of(account))),
	editKey: (account: string, id: string, input: Partial<KeySettingsInput>) =>
		unwrap(client.keys({ id }).patch(input, of(account))),
	rotateKey: (account: string, id: string, graceMs: number, token: string) =>
		unwrap(client.keys({ id }).rotate.post({ graceMs, token }, of(account))),
	revokeKey: (account: string, id: string) => unwrap(client.keys({ id }).revoke.post({}, of(account))),

	projects: (account: string, after: After = null) => unwrap(client.projects.get(of(account, { after, limit: 100 }))),
	project: (account: string, id: string) => unwrap(client.projects({ id }).get(of(account))),
	createProject: (account: string, input: KeySettingsInput, token: string) =>
		unwrap(client.projects.post({ ...input, token }, of(account))),
	editProject: (account: string, id: string, input: Partial<KeySettingsInput>) =>
		unwrap(client.projects({ id }).patch(input, of(account))),
	archiveProject: (account: string, id: string) => unwrap(client.projects({ id }).archive.post({}, of(account))),
	projectMembers: (account: string, id: string) => unwrap(client.projects({ id }).members.get(of(account))),
	addProjectMember: (account: string, id: string, userId: string) =>
		unwrap(client.projects({ id }).members({ userId }).put({}, of(account))),
	removeProjectMember: (account: string, id: string, userId: string, keys: "keep" | "revoke" | null) =>
		unwrap(client.projects({ id }).members({ userId }).delete(undefined, of(account, { keys }))),

	credit: (account: string) => unwrap(client.credit.get(of(account))),
	running: (account: string) => unwrap(client.credit.running.get(of(account))),
	topUps: (account: string, after: After = null) => unwrap(client.credit["top-ups"].get(of(account, { after }))),
	topUpByTransfer: (account: string, usd: string, token: string) =>
		unwrap(client.credit["top-ups"].transfer.post({ usd, token }, of(account))),
	topUpByCard: (account: string, usd: string, token: string) =>
		unwrap(client.credit["top-ups"].card.post({ usd, token }, of(account))),
	cancelTopUp: (account: string, id: string) => unwrap(client.credit["top-ups"]({ id }).cancel.post({}, of(account))),
	autoTopUp: (account: string) => unwrap(client.credit["auto-top-up"].get(of(account))),
	saveAutoTopUp: (account: string, input: { belowUsd: string; amountUsd: string; monthMostUsd: string }) =>
		unwrap(client.credit["auto-top-up"].put({ ...input, consent: true }, of(account))),
	switchOffAutoTopUp: (account: string) => unwrap(client.credit["auto-top-up"].delete(undefined, of(account))),
	finishAutoTopUp: (account: string) => unwrap(client.credit["auto-top-up"].finish.post({}, of(account))),
	saveCard: (account: string) => unwrap(client.credit.card.post({}, of(account))),
	removeCard: (account: string) => unwrap(client.credit.card.delete(undefined, of(account))),
	receiptAddress: (account: string, id: string) => `${BASE}/credit/receipts/${part(id)}${queryText({ account })}`,
	statements: (account: string) => unwrap(client.credit.statements.get(of(account))),
	statementAddress: (account: string, month: string, kind: "" | ".csv" | ".pdf") =>
		`${BASE}/credit/statement${kind}${queryText({ account, month })}`,
	billingDetails: (account: string) => unwrap(client.credit["billing-details"].get(of(account))),
	setBillingDetails: (account: string, input: { company: string; address: string; vatId: string }) =>
		unwrap(client.credit["billing-details"].put(input, of(account))),
	ledger: (account: string, after: After = null) => unwrap(client.credit.ledger.get(of(account, { after }))),

	usage: (account: string, filter: UsageFilter) => unwrap(client.usage.get(of(account, filter))),
	usageCsvAddress: (account: string, filter: UsageFilter) => `${BASE}/usage.csv${queryText({ account, ...filter })}`,
	requests: (account: string, filter: LogFilter, page: { after?: After; limit: number }) =>
		unwrap(client.requests.get(of(account, { ...filter, ...page }))),
	request: (account: string, id: string) => unwrap(client.requests({ id }).get(of(account))),
	requestsCsvAddress: (account: string, filter: LogFilter) =>
		`${BASE}/requests.csv${queryText({ account, ...filter })}`,
	batches: (account: string, after: After = null) => unwrap(client.batches.get(of(account, { after }))),
	batch: (account: string, id: string) => unwrap(client.batches({ id }).get(of(account))),
	cancelBatch: (account: string, id: string) => unwrap(client.batches({ id }).cancel.post({}, of(account))),
	startBatch: async (account: string, asked: { key: string; endpoint: string; file: File; token: string }) => {
		const { file, ...rest } = asked;
		const query = queryText({ account, ...rest, filename: file.name });
		const response = await sendRequest(`${BASE}/batch-start${query}`, { method: "POST", body: file });
		return (await response.json()) as { readonly id: string };
	},
	notices: (account: string) => unwrap(client["batch-notices"].get(of(account))),
	setNotices: (account: string, changes: NoticeChanges, token: string) =>
		unwrap(client["batch-notices"].put({ ...changes, token }, of(account))),
	newWebhookSecret: (account: string, token: string) =>
		unwrap(client["batch-notices"].secret.post({ token }, of(account))),
	replayNotice: (account: string, id: string) => unwrap(client["batch-notices"]({ id }).replay.post({}, of(account))),
	batchFileAddress: (account: string, id: string) => `${BASE}/batch-files/${part(id)}${queryText({ account })}`,
	playgroundAddress: (account: string, key: string) => `${BASE}/playground/chat${queryText({ account, key })}`,
};
