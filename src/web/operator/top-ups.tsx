import { SegmentedControl } from "@mantine/core";
import type { ReactNode } from "react";
import { stateText } from "../labels.ts";
import { TOP_UP_METHODS } from "../parts/account-tables.tsx";
import { DetailList, Empty, Notice, Page, Panel, State } from "../parts/page.tsx";
import { DataTable, fromList, type TableRows } from "../parts/table.tsx";
import { Amount, CopyableId, RelativeTime } from "../parts/text.tsx";
import { useList } from "../resource.ts";
import { useQueryState } from "../router.tsx";
import { inSentence, isolatedText, showUsd, t } from "../texts.tsx";
import { type OperatorTopUp, operatorApi } from "./api.ts";
import { ACCOUNT_COLUMN, type RowDecision, reviewButtons, useDecision } from "./decision.tsx";

const STATES = ["pending", "confirmed", "rejected", "refunded", "disputed"] as const;

export function TopUpsPage() {
	const [query, change] = useQueryState();
	const state = STATES.find((item) => item === query.get("state")) ?? "pending";
	const list = useList(`operator-top-ups ${state}`, (after) => operatorApi.topUps(state, after));
	return (
		<Page title={t("Top-ups")} lead={t("Confirm a top-up only after the payment has arrived.")}>
			<SegmentedControl
				size="xs"
				aria-label={t("State")}
				data={STATES.map((value) => ({ value, label: stateText(value) }))}
				value={state}
				onChange={(value) => change({ state: value === "pending" ? null : value })}
			/>
			<Panel flush>
				<ReviewTable
					{...fromList(list)}
					onDecided={() => void list.reload()}
					empty={
						state !== "pending" && <Empty title={t("No {state} top-ups.", { state: inSentence(stateText(state)) })} />
					}
				/>
			</Panel>
		</Page>
	);
}

export function ReviewTable(props: TableRows<OperatorTopUp> & { onDecided: () => void; empty?: ReactNode }) {
	const { onDecided, empty, ...table } = props;
	const [dialog, choose] = useDecision<RowDecision<OperatorTopUp>>(
		({ row, isConfirm }) => (isConfirm ? confirmation(row) : rejection(row)),
		onDecided,
	);
	return (
		<>
			<DataTable
				label={t("Top-ups")}
				{...table}
				empty={
					empty || (
						<Empty title={t("No pending top-ups.")}>{t("Bank transfers that customers announce appear here.")}</Empty>
					)
				}
				columns={[
					{
						label: t("Reference"),
						lead: true,
						render: (topUp) => <CopyableId value={topUp.reference} label={t("Copy the reference")} />,
					},
					ACCOUNT_COLUMN,
					{
						label: t("Method"),
						render: (topUp) => <span className="num">{TOP_UP_METHODS[topUp.method] ?? topUp.method}</span>,
					},
					{ label: t("Created"), render: (topUp) => <RelativeTime atMs={topUp.createdAtMs} /> },
					{
						label: t("State"),
						render: ({ state, firstLookBy }) =>
							state === "pending" && firstLookBy !== null ? (
								<State value="pending" label={t("Second review")} />
							) : (
								<State value={state} />
							),
					},
					{ label: t("Amount"), amount: (topUp) => topUp.amountNanoUsd, corner: true },
				]}
				act={reviewButtons(choose, ({ state, method }) => state === "pending" && method === "transfer")}
			/>
			{dialog}
		</>
	);
}

const confirmation = (topUp: OperatorTopUp) => ({
	title: t("Confirm the top-up"),
	about: (
		<>
			<TopUpFacts topUp={topUp} />
			{topUp.needsSecondLook && (
				<Notice>
					{topUp.firstLookBy === null
						? t("A top-up of this size needs two operators. You are the first.")
						: t("{firstLookBy} reviewed it first. Enter the transaction reference from the bank statement.", {
								firstLookBy: topUp.firstLookBy,
							})}
				</Notice>
			)}
		</>
	),
	act: t("Confirm {amount}", { amount: showUsd(topUp.amountNanoUsd) }),
	field: {
		label: t("Bank transaction reference"),
		description: t("Copy it from the bank statement. Each transaction is credited once."),
		minLength: 3,
		maxLength: 200,
	},
	run: async (reference: string) =>
		(await operatorApi.confirmTopUp(topUp.id, reference)).secondLookNeeded
			? t("Your review is recorded. A top-up of this size needs a second operator's confirmation.")
			: undefined,
});

const rejection = (topUp: OperatorTopUp) => ({
	title: t("Reject the top-up"),
	about: <TopUpFacts topUp={topUp} />,
	act: t("Reject"),
	danger: true,
	field: { label: t("Reason"), description: t("Shown to the customer and saved in the audit log") },
	run: async (reason: string) => void (await operatorApi.rejectTopUp(topUp.id, reason)),
});

function TopUpFacts({ topUp }: { topUp: OperatorTopUp }) {
	return (
		<DetailList
			of={{
				[t("Account")]: `${isolatedText(topUp.accountName)} (${topUp.accountEmail})`,
				[t("Amount")]: <Amount nanoUsd={topUp.amountNanoUsd} />,
				[t("Reference")]: <CopyableId value={topUp.reference} label={t("Copy the reference")} />,
			}}
		/>
	);
}
