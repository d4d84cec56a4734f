import { treaty } from "@elysiajs/eden";
import type { Language } from "../base/language.ts";
import type { ConsoleApi, Role } from "../console/views.ts";
import { omitUndefined, parseApiError, queryText, sendRequest, unreachableError } from "./http.ts";

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

type CompanyInput = Parameters<(typeof client)["company-sign-in"]["put"]>[0];

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
	models: (account: string | null) => unwrap(client.public.models.get({ query: omitUndefined({ account }) })),
	model: (id: string, account: string | null) =>
		unwrap(client.public.model.get({ query: { id, ...omitUndefined({ account }) } })),
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

// Client typed by the console's routes. With `parseDate: false` a key's name that looks like a date stays a text.
export const client = treaty<ConsoleApi>(globalThis.location?.origin ?? "", { parseDate: false, keepDomain: true }).api
	.console;

/** Event on `window`: the server refused the session or the account, so the viewer must be loaded again. */
export const VIEWER_STALE = "tollgate:viewer-stale";

type Reply = { data: unknown; error: { value: unknown } | null; response: Response };
type DataOf<A> = A extends { error: null; data: infer Data } ? Data : never;

/** Returns the data of a successful response; throws ApiError otherwise. */
export async function unwrap<A extends Reply>(asked: Promise<A>): Promise<DataOf<A>> {
	const answer = await asked.catch(() => undefined);
	if (answer?.error === null) return answer.data as DataOf<A>;
	// The client throws, or returns no headers, if the server was unreachable.
	if (!answer?.response?.headers) throw unreachableError();
	const error = parseApiError(answer.response, answer.error.value);
	const isAccountGone = error.code === "not_found" && error.param === "account";
	if (error.code === "session_required" || isAccountGone) dispatchEvent(new Event(VIEWER_STALE));
	throw error;
}

/**
 * Response types of the console's API, derived from the server's code. Units: `NanoUsd` nano-dollars, rates
 * pico-dollars per unit, `AtMs` Unix milliseconds, `Ms` milliseconds.
 */

export type Answer<F extends (...args: never[]) => Promise<unknown>> = Awaited<ReturnType<F>>;
export type Item<P extends { readonly items: readonly unknown[] }> = P["items"][number];

export type PublicConfig = Answer<typeof api.config>;
export type ModelView = Item<Answer<typeof api.models>>;
export type ModelDetail = Answer<typeof api.model>;
export type OutboxMail = Item<Answer<typeof api.outbox>>;

export type Me = Answer<typeof api.me>;
export type AccountView = Me["accounts"][number];
export type MemberRow = Item<Answer<typeof api.members>>;
export type InvitationRow = Answer<typeof api.members>["invitations"][number];
export type MemberKeyView = Item<Answer<typeof api.memberKeys>>;
export type CompanyView = Answer<typeof api.companySignIn>;
export type SessionView = Item<Answer<typeof api.sessions>>;

export type Overview = Answer<typeof api.overview>;
/** The fields of the overview that the live feed sends. */
export type OverviewLive = Omit<Overview, "chart" | "topModels">;
export type Checklist = Overview["checklist"];
export type Balance = Overview["balance"];
export type UsageSeries = Answer<typeof api.usage>;
export type UsageGroup = UsageSeries["groups"][number];
export type LogRow = Item<Answer<typeof api.requests>>;
/** A request in the log that was admitted and has ended. */
export type RequestRow = Exclude<LogRow, { statusClass: "refused" }>;
type LogDetail = Answer<typeof api.request>;
export type RefusedDetail = Extract<LogDetail, { statusClass: "refused" }>;
export type RequestDetail = Exclude<LogDetail, RefusedDetail>;

export type KeyView = Answer<typeof api.key>;
export type ProjectView = Answer<typeof api.project>;
export type ProjectMemberView = Item<Answer<typeof api.projectMembers>>;
/** State of a change: whether every live instance has applied it. */
export type Fence = Answer<typeof api.revokeKey>["fence"];

export type BatchView = Answer<typeof api.batch>;
export type Notices = Answer<typeof api.notices>;
export type NoticeView = Item<Notices>;

export type CreditView = Answer<typeof api.credit>;
export type AutoTopUpView = Answer<typeof api.autoTopUp>;
export type AlertView = CreditView["alert"];
export type RunningRequest = Item<Answer<typeof api.running>>;
export type TopUpView = Item<Answer<typeof api.topUps>>;
export type LedgerEntry = Item<Answer<typeof api.ledger>>;

export type StatementMonth = Item<Answer<typeof api.statements>>;
export type BillingDetails = Answer<typeof api.billingDetails>;

/** Changed settings of notices; absent fields keep their value. */
export type NoticeChanges = Omit<Parameters<(typeof client)["batch-notices"]["put"]>[0], "token">;
