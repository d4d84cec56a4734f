import type { Language } from "../base/language.ts";
import type { Role } from "../console/views.ts";
import type { CapPeriod } from "../keys/cap-period.ts";
import { client, dataOf } from "./client.ts";
import { given, queryText, send } from "./http.ts";
import type { NoticeChanges } from "./notice-changes.ts";

/** Calls of the console's interface. Calls on an account take its id first. */

const BASE = "/api/console";
const part = encodeURIComponent;
type After = string | null;

export interface KeySettingsInput {
	readonly name: string;
	/** For a new key: it can only read. */
	readonly readsOnly?: boolean;
	/** Decimal dollars; null removes the cap. */
	readonly capUsd?: string | null;
	readonly capPeriod?: CapPeriod;
	readonly models?: string[];
	readonly expiresAtMs?: number | null;
	readonly requestsPerMinute?: number | null;
	readonly concurrencyMax?: number | null;
	readonly projectId?: string | null;
}

export type ProjectSettingsInput = Omit<KeySettingsInput, "readsOnly" | "expiresAtMs" | "projectId">;

export interface LogFilter {
	readonly from: number | null;
	readonly to: number | null;
	readonly model: string | null;
	readonly key: string | null;
	/** By the project at the time of use. */
	readonly project?: string | null;
	readonly status: "ok" | "failed" | "left" | "refused" | null;
	/** Lines of this batch only. */
	readonly batch?: string | null;
}

export interface UsageFilter extends LogFilter {
	/** Refused requests used nothing. */
	readonly status: "ok" | "failed" | "left" | null;
	readonly bucket: "hour" | "day";
	readonly group: "model" | "key" | "project" | "status";
}

export type CompanyInput = Parameters<(typeof client)["company-sign-in"]["put"]>[0];

/** All pages as one list, in the order of joining, so that every member can be found in it. */
async function allMembers(account: string) {
	const pageBehind = (after: After) => dataOf(client.members.get({ query: { account, ...given({ after }) } }));
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
	config: () => dataOf(client.public.config.get()),
	models: () => dataOf(client.public.models.get()),
	model: (id: string) => dataOf(client.public.model.get({ query: { id } })),
	outbox: (email: string) => dataOf(client.public.outbox.get({ query: { email } })),

	me: (account: string | null) => dataOf(client.me.get({ query: given({ account }) })),
	sessions: () => dataOf(client.sessions.get()),
	revokeSession: (id: string) => dataOf(client.sessions({ id }).delete()),
	passkeys: () => dataOf(client.passkeys.get()),
	removePasskey: (id: string) => dataOf(client.passkeys({ id }).delete()),
	setLanguage: (language: Language) => dataOf(client.language.put({ language })),
	acceptTerms: (version: string) => dataOf(client.terms.post({ version })),
	reauthenticate: (password: string) => dataOf(client.reauthenticate.post({ password })),
	revokeOtherSessions: () => dataOf(client.sessions["revoke-others"].post({})),
	changeAccount: (account: string, changes: { name?: string; timeZone?: string }) =>
		dataOf(client.account.patch(changes, { query: { account } })),
	members: allMembers,
	invite: (account: string, asked: { email: string; role: Role }, token: string) =>
		dataOf(client.invitations.post({ ...asked, token }, { query: { account } })),
	withdrawInvitation: (account: string, id: string) =>
		dataOf(client.invitations({ id }).delete(undefined, { query: { account } })),
	acceptInvitation: (token: string) => dataOf(client.invitations.accept.post({ token })),
	memberKeys: (account: string, userId: string) => dataOf(client.members({ userId }).keys.get({ query: { account } })),
	changeRole: (account: string, userId: string, role: Role, keys: "keep" | "revoke" | null) =>
		dataOf(client.members({ userId }).patch({ role }, { query: { account, ...given({ keys }) } })),
	removeMember: (account: string, userId: string, keys: "keep" | "revoke") =>
		dataOf(client.members({ userId }).delete(undefined, { query: { account, keys } })),
	companySignIn: (account: string) => dataOf(client["company-sign-in"].get({ query: { account } })),
	setCompanySignIn: (account: string, input: CompanyInput) =>
		dataOf(client["company-sign-in"].put(input, { query: { account } })),
	verifyCompany: (account: string) => dataOf(client["company-sign-in"].verify.post({}, { query: { account } })),
	removeCompany: (account: string) => dataOf(client["company-sign-in"].delete(undefined, { query: { account } })),
	setAlert: (account: string, usd: string | null) => dataOf(client.alert.put({ usd }, { query: { account } })),

	overview: (account: string) => dataOf(client.overview.get({ query: { account } })),
	liveAddress: (topic: "overview" | "operator", account: string | null) =>
		`${BASE}/live${queryText({ topics: topic, account })}`,

	keys: (account: string, after: After = null, project: string | null = null) =>
		dataOf(client.keys.get({ query: { account, ...given({ after, project }), limit: 100 } })),
	key: (account: string, id: string) => dataOf(client.keys({ id }).get({ query: { account } })),
	createKey: (account: string, input: KeySettingsInput, token: string) =>
		dataOf(client.keys.post({ ...input, token }, { query: { account } })),
	editKey: (account: string, id: string, input: Partial<KeySettingsInput>) =>
		dataOf(client.keys({ id }).patch(input, { query: { account } })),
	rotateKey: (account: string, id: string, graceMs: number, token: string) =>
		dataOf(client.keys({ id }).rotate.post({ graceMs, token }, { query: { account } })),
	revokeKey: (account: string, id: string) => dataOf(client.keys({ id }).revoke.post({}, { query: { account } })),

	projects: (account: string, after: After = null) =>
		dataOf(client.projects.get({ query: { account, ...given({ after }), limit: 100 } })),
	project: (account: string, id: string) => dataOf(client.projects({ id }).get({ query: { account } })),
	createProject: (account: string, input: ProjectSettingsInput, token: string) =>
		dataOf(client.projects.post({ ...input, token }, { query: { account } })),
	editProject: (account: string, id: string, input: Partial<ProjectSettingsInput>) =>
		dataOf(client.projects({ id }).patch(input, { query: { account } })),
	archiveProject: (account: string, id: string) =>
		dataOf(client.projects({ id }).archive.post({}, { query: { account } })),
	projectMembers: (account: string, id: string) => dataOf(client.projects({ id }).members.get({ query: { account } })),
	addProjectMember: (account: string, id: string, userId: string) =>
		dataOf(client.projects({ id }).members({ userId }).put({}, { query: { account } })),
	removeProjectMember: (account: string, id: string, userId: string, keys: "keep" | "revoke" | null) =>
		dataOf(
			client
				.projects({ id })
				.members({ userId })
				.delete(undefined, { query: { account, ...given({ keys }) } }),
		),

	credit: (account: string) => dataOf(client.credit.get({ query: { account } })),
	running: (account: string) => dataOf(client.credit.running.get({ query: { account } })),
	topUps: (account: string, after: After = null) =>
		dataOf(client.credit["top-ups"].get({ query: { account, ...given({ after }) } })),
	topUpByTransfer: (account: string, usd: string, token: string) =>
		dataOf(client.credit["top-ups"].transfer.post({ usd, token }, { query: { account } })),
	topUpByCard: (account: string, usd: string, token: string) =>
		dataOf(client.credit["top-ups"].card.post({ usd, token }, { query: { account } })),
	cancelTopUp: (account: string, id: string) =>
		dataOf(client.credit["top-ups"]({ id }).cancel.post({}, { query: { account } })),
	autoTopUp: (account: string) => dataOf(client.credit["auto-top-up"].get({ query: { account } })),
	saveAutoTopUp: (account: string, input: { belowUsd: string; amountUsd: string; monthMostUsd: string }) =>
		dataOf(client.credit["auto-top-up"].put({ ...input, consent: true }, { query: { account } })),
	switchOffAutoTopUp: (account: string) =>
		dataOf(client.credit["auto-top-up"].delete(undefined, { query: { account } })),
	finishAutoTopUp: (account: string) => dataOf(client.credit["auto-top-up"].finish.post({}, { query: { account } })),
	saveCard: (account: string) => dataOf(client.credit.card.post({}, { query: { account } })),
	removeCard: (account: string) => dataOf(client.credit.card.delete(undefined, { query: { account } })),
	receiptAddress: (account: string, id: string) => `${BASE}/credit/receipts/${part(id)}${queryText({ account })}`,
	statements: (account: string) => dataOf(client.credit.statements.get({ query: { account } })),
	statementAddress: (account: string, month: string, kind: "" | ".csv" | ".pdf") =>
		`${BASE}/credit/statement${kind}${queryText({ account, month })}`,
	billingDetails: (account: string) => dataOf(client.credit["billing-details"].get({ query: { account } })),
	setBillingDetails: (account: string, input: { company: string; address: string; vatId: string }) =>
		dataOf(client.credit["billing-details"].put(input, { query: { account } })),
	ledger: (account: string, after: After = null) =>
		dataOf(client.credit.ledger.get({ query: { account, ...given({ after }) } })),

	usage: (account: string, filter: UsageFilter) => dataOf(client.usage.get({ query: { account, ...given(filter) } })),
	usageCsvAddress: (account: string, filter: UsageFilter) => `${BASE}/usage.csv${queryText({ account, ...filter })}`,
	requests: (account: string, filter: Partial<LogFilter>, page: { after?: After; limit: number }) =>
		dataOf(client.requests.get({ query: { account, limit: page.limit, ...given({ ...filter, after: page.after }) } })),
	request: (account: string, id: string) => dataOf(client.requests({ id }).get({ query: { account } })),
	requestsCsvAddress: (account: string, filter: LogFilter) =>
		`${BASE}/requests.csv${queryText({ account, ...filter })}`,
	batches: (account: string, after: After = null) =>
		dataOf(client.batches.get({ query: { account, ...given({ after }) } })),
	batch: (account: string, id: string) => dataOf(client.batches({ id }).get({ query: { account } })),
	cancelBatch: (account: string, id: string) => dataOf(client.batches({ id }).cancel.post({}, { query: { account } })),
	startBatch: async (account: string, asked: { key: string; endpoint: string; file: File; token: string }) => {
		const { file, ...rest } = asked;
		const query = queryText({ account, ...rest, filename: file.name });
		const response = await send(`${BASE}/batch-start${query}`, { method: "POST", body: file });
		return (await response.json()) as { readonly id: string };
	},
	notices: (account: string) => dataOf(client["batch-notices"].get({ query: { account } })),
	setNotices: (account: string, changes: NoticeChanges, token: string) =>
		dataOf(client["batch-notices"].put({ ...changes, token }, { query: { account } })),
	newWebhookSecret: (account: string, token: string) =>
		dataOf(client["batch-notices"].secret.post({ token }, { query: { account } })),
	replayNotice: (account: string, id: string) =>
		dataOf(client["batch-notices"]({ id }).replay.post({}, { query: { account } })),
	batchFileAddress: (account: string, id: string) => `${BASE}/batch-files/${part(id)}${queryText({ account })}`,
	playgroundAddress: (account: string, key: string) => `${BASE}/playground/chat${queryText({ account, key })}`,
};
