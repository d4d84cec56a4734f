import type { WrittenTerms } from "../../billing/price-agreements.ts";
import { type Answer, client, type Item, type UsageFilter, unwrap } from "../api.ts";
import { omitUndefined, queryText } from "../http.ts";

const operator = client.operator;
type After = string | null;
export type ServiceFilter = Pick<UsageFilter, "from" | "to" | "bucket" | "model">;
export type RevenueFilter = ServiceFilter & { readonly group: "model" | "account" | "project" | "code" };
export type TopUpState = "pending" | "confirmed" | "rejected" | "refunded" | "disputed";

export const operatorApi = {
	revenue: (filter: RevenueFilter) => unwrap(operator.revenue.get({ query: omitUndefined(filter) })),
	revenueCsvAddress: (filter: RevenueFilter) => `/api/console/operator/revenue.csv${queryText(filter)}`,
	figures: (filter: ServiceFilter) => unwrap(operator.figures.get({ query: omitUndefined(filter) })),
	service: (filter: ServiceFilter) => unwrap(operator.service.get({ query: omitUndefined(filter) })),
	marginCsvAddress: (filter: ServiceFilter) => `/api/console/operator/margin.csv${queryText(filter)}`,
	summary: () => unwrap(operator.summary.get()),
	accounts: (q: string, after: After) => unwrap(operator.accounts.get({ query: omitUndefined({ q, after }) })),
	account: (id: string) => unwrap(operator.accounts({ id }).get()),
	view: (id: string) => unwrap(operator.accounts({ id }).view.post({})),
	suspend: (id: string, reason: string) => unwrap(operator.accounts({ id }).suspend.post({ reason })),
	unsuspend: (id: string, reason: string) => unwrap(operator.accounts({ id }).unsuspend.post({ reason })),
	setTerms: (id: string, terms: { tags: string[]; tokensPerMinute: number | null }) =>
		unwrap(operator.accounts({ id }).terms.put(terms)),
	adjust: (
		{
			id,
			...adjustment
		}: { id: string; usd: string; reason: string; promotion?: { lastDay: string | null }; price?: WrittenTerms },
		idempotencyKey: string,
	) => unwrap(operator.accounts({ id }).adjust.post({ ...adjustment, idempotencyKey })),
	confirmAdjustment: (id: string) => unwrap(operator.adjustments({ id }).confirm.post({})),
	rejectAdjustment: (id: string, reason: string) => unwrap(operator.adjustments({ id }).reject.post({ reason })),
	topUps: (state: TopUpState, after: After) =>
		unwrap(operator["top-ups"].get({ query: { state, ...omitUndefined({ after }) } })),
	confirmTopUp: (id: string, transactionReference: string) =>
		unwrap(operator["top-ups"]({ id }).confirm.post({ transactionReference })),
	rejectTopUp: (id: string, reason: string) => unwrap(operator["top-ups"]({ id }).reject.post({ reason })),
	closeFinding: (id: string, reason: string) => unwrap(operator["payment-findings"].close.post({ id, reason })),
	deployments: () => unwrap(operator.deployments.get()),
	instances: () => unwrap(operator.instances.get()),
	reconciliation: () => unwrap(operator.reconciliation.get()),
	journals: () => unwrap(operator.journals.get()),
	journalAddress: (month: string) => `/api/console/operator/journal.csv${queryText({ month })}`,
	reconcile: () => unwrap(operator.reconciliation.post({})),
	managementKeys: (after: After) => unwrap(operator["management-keys"].get({ query: omitUndefined({ after }) })),
	createManagementKey: (key: { name: string; scopes: string[]; expiresAtMs: number | null }, token: string) =>
		unwrap(operator["management-keys"].post({ ...key, token })),
	revokeManagementKey: (id: string) => unwrap(operator["management-keys"]({ id }).revoke.post({})),
	audit: (filter: { subject: string | null; actor: string | null; action: string | null }, after: After) =>
		unwrap(operator.audit.get({ query: omitUndefined({ ...filter, after }) })),
};

export type RevenueFigures = Answer<typeof operatorApi.figures>;
export type ServiceFigures = Answer<typeof operatorApi.service>;
export type OperatorSummary = Answer<typeof operatorApi.summary>;
export type PaymentFinding = OperatorSummary["paymentFindings"][number];
export type PendingAdjustment = OperatorSummary["waitingAdjustments"][number];
export type OperatorAccount = Answer<typeof operatorApi.account>;
export type OperatorTopUp = Item<Answer<typeof operatorApi.topUps>>;
export type DeploymentRow = Item<Answer<typeof operatorApi.deployments>>;
export type ReplicaRow = DeploymentRow["replicas"][number];
export type ManagementKeyRow = Item<Answer<typeof operatorApi.managementKeys>>;
export type AuditRow = Item<Answer<typeof operatorApi.audit>>;
