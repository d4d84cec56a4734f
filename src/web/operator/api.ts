import type { UsageFilter } from "../api.ts";
import { client, dataOf } from "../client.ts";
import { given, queryText } from "../http.ts";
import type { Answer, Item } from "../views.ts";

const operator = client.operator;
type After = string | null;
export type ServiceFilter = Pick<UsageFilter, "from" | "to" | "bucket" | "model">;
export type RevenueFilter = ServiceFilter & { readonly group: "model" | "account" | "project" | "code" };
export type TopUpState = "pending" | "confirmed" | "rejected" | "refunded" | "disputed";

export const operatorApi = {
	revenue: (filter: RevenueFilter) => dataOf(operator.revenue.get({ query: given(filter) })),
	revenueCsvAddress: (filter: RevenueFilter) => `/api/console/operator/revenue.csv${queryText(filter)}`,
	figures: (filter: ServiceFilter) => dataOf(operator.figures.get({ query: given(filter) })),
	service: (filter: ServiceFilter) => dataOf(operator.service.get({ query: given(filter) })),
	summary: () => dataOf(operator.summary.get()),
	accounts: (q: string, after: After) => dataOf(operator.accounts.get({ query: given({ q, after }) })),
	account: (id: string) => dataOf(operator.accounts({ id }).get()),
	view: (id: string) => dataOf(operator.accounts({ id }).view.post({})),
	suspend: (id: string, reason: string) => dataOf(operator.accounts({ id }).suspend.post({ reason })),
	unsuspend: (id: string, reason: string) => dataOf(operator.accounts({ id }).unsuspend.post({ reason })),
	setTerms: (id: string, terms: { tags: string[]; tokensPerMinute: number | null }) =>
		dataOf(operator.accounts({ id }).terms.put(terms)),
	adjust: (
		{ id, ...adjustment }: { id: string; usd: string; reason: string; promotion?: { lastDay: string | null } },
		idempotencyKey: string,
	) => dataOf(operator.accounts({ id }).adjust.post({ ...adjustment, idempotencyKey })),
	confirmAdjustment: (id: string) => dataOf(operator.adjustments({ id }).confirm.post({})),
	rejectAdjustment: (id: string, reason: string) => dataOf(operator.adjustments({ id }).reject.post({ reason })),
	topUps: (state: TopUpState, after: After) =>
		dataOf(operator["top-ups"].get({ query: { state, ...given({ after }) } })),
	confirmTopUp: (id: string, transactionReference: string) =>
		dataOf(operator["top-ups"]({ id }).confirm.post({ transactionReference })),
	rejectTopUp: (id: string, reason: string) => dataOf(operator["top-ups"]({ id }).reject.post({ reason })),
	closeFinding: (id: string, reason: string) => dataOf(operator["payment-findings"].close.post({ id, reason })),
	deployments: () => dataOf(operator.deployments.get()),
	instances: () => dataOf(operator.instances.get()),
	reconciliation: () => dataOf(operator.reconciliation.get()),
	journals: () => dataOf(operator.journals.get()),
	journalAddress: (month: string) => `/api/console/operator/journal.csv${queryText({ month })}`,
	reconcile: () => dataOf(operator.reconciliation.post({})),
	managementKeys: (after: After) => dataOf(operator["management-keys"].get({ query: given({ after }) })),
	createManagementKey: (key: { name: string; scopes: string[]; expiresAtMs: number | null }, token: string) =>
		dataOf(operator["management-keys"].post({ ...key, token })),
	revokeManagementKey: (id: string) => dataOf(operator["management-keys"]({ id }).revoke.post({})),
	audit: (filter: { subject: string | null; actor: string | null; action: string | null }, after: After) =>
		dataOf(operator.audit.get({ query: given({ ...filter, after }) })),
};

export type Figures = Answer<typeof operatorApi.figures>;
export type ServiceFigures = Answer<typeof operatorApi.service>;
export type OperatorSummary = Answer<typeof operatorApi.summary>;
export type PaymentFinding = OperatorSummary["paymentFindings"][number];
export type AdjustmentWaiting = OperatorSummary["waitingAdjustments"][number];
export type OperatorAccount = Answer<typeof operatorApi.account>;
export type TopUpWaiting = Item<Answer<typeof operatorApi.topUps>>;
export type DeploymentRow = Item<Answer<typeof operatorApi.deployments>>;
export type ReplicaRow = DeploymentRow["replicas"][number];
export type ManagementKeyRow = Item<Answer<typeof operatorApi.managementKeys>>;
export type AuditRow = Item<Answer<typeof operatorApi.audit>>;
