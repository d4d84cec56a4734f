import type { operatorApi } from "./api.ts";

/** What operators are answered, taken from the server's own types. */

type Answer<F extends (...args: never[]) => Promise<unknown>> = Awaited<ReturnType<F>>;
type Item<P extends { readonly items: readonly unknown[] }> = P["items"][number];

export type OperatorSummary = Answer<typeof operatorApi.summary>;
export type OperatorAccountRow = Item<Answer<typeof operatorApi.accounts>>;
export type OperatorAccount = Answer<typeof operatorApi.account>;
export type TopUpWaiting = Item<Answer<typeof operatorApi.topUps>>;
export type DeploymentRow = Item<Answer<typeof operatorApi.deployments>>;
export type ReplicaRow = DeploymentRow["replicas"][number];
export type InstanceRow = Item<Answer<typeof operatorApi.instances>>;
export type ReconciliationRun = Answer<typeof operatorApi.reconcile>;
export type AuditRow = Item<Answer<typeof operatorApi.audit>>;
