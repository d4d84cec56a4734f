import type { operatorApi } from "./api.ts";

/** What operators are answered, taken from the server's own types. */

type Answer<F extends (...args: never[]) => Promise<unknown>> = Awaited<ReturnType<F>>;
type Item<P extends { readonly items: readonly unknown[] }> = P["items"][number];

export type OperatorSummary = Answer<typeof operatorApi.summary>;
export type PaymentFinding = OperatorSummary["paymentFindings"][number];
export type AdjustmentWaiting = OperatorSummary["waitingAdjustments"][number];
export type OperatorAccount = Answer<typeof operatorApi.account>;
export type TopUpWaiting = Item<Answer<typeof operatorApi.topUps>>;
export type DeploymentRow = Item<Answer<typeof operatorApi.deployments>>;
export type ReplicaRow = DeploymentRow["replicas"][number];
export type ManagementKeyRow = Item<Answer<typeof operatorApi.managementKeys>>;
export type AuditRow = Item<Answer<typeof operatorApi.audit>>;
