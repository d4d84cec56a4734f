import { type ReactNode, useState } from "react";
import type { ApiError } from "../http.ts";
import { TOP_UP_METHODS } from "../labels.ts";
import { ActForm, Dialog, DialogDone } from "../parts/dialog.tsx";
import { TextField } from "../parts/fields.tsx";
import { Facts, State } from "../parts/page.tsx";
import { Empty, Notice } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Ago, Amount, Id } from "../parts/text.tsx";
import { useAction } from "../resource.ts";
import { Link } from "../router.tsx";
import { showUsd } from "../shown-money.ts";
import { isolated, rich, t } from "../texts.tsx";
import { operatorApi, type TopUpWaiting } from "./api.ts";
import { DecisionButtons, DecisionDialog, useDecision } from "./decision.tsx";

/** Top-ups, with the operator's decisions. */
export function WaitingTable(props: {
	rows: readonly TopUpWaiting[] | undefined;
	onDecided: () => void;
	error?: ApiError | undefined;
	more?: Parameters<typeof DataTable<TopUpWaiting>>[0]["more"];
	empty?: ReactNode;
}) {
	const { open, ask, close, decided } = useDecision<TopUpWaiting>(props.onDecided);
	return (
		<>
			<DataTable
				label={t("Top-ups")}
				rows={props.rows}
				rowKey={(topUp) => topUp.id}
				error={props.error}
				retry={props.onDecided}
				{...(props.more ? { more: props.more } : {})}
				empty={
					props.empty ?? (
						<Empty title={t("No top-up waits.")}>{t("A bank transfer that a customer announces appears here.")}</Empty>
					)
				}
				columns={[
					{
						label: t("Reference"),
						lead: true,
						render: (topUp) => <Id value={topUp.reference} label={t("Copy the reference")} />,
					},
					{
						label: t("Account"),
						render: (topUp) => <Link to={`/operator/accounts/${topUp.accountId}`}>{topUp.accountEmail}</Link>,
					},
					{
						label: t("Method"),
						render: (topUp) => <span className="num">{TOP_UP_METHODS[topUp.method] ?? topUp.method}</span>,
					},
					{ label: t("Waiting"), render: (topUp) => <Ago atMs={topUp.createdAtMs} /> },
					{ label: t("State"), render: (topUp) => <TopUpState topUp={topUp} /> },
					{ label: t("Amount"), amount: (topUp) => topUp.amountNanoUsd, corner: true },
					{
						label: t("Action"),
						act: true,
						right: true,
						render: (topUp) =>
							topUp.state === "pending" && topUp.method === "transfer" ? (
								<DecisionButtons onChoose={(act) => ask(topUp, act)} />
							) : null,
					},
				]}
			/>
			{open?.act === "confirm" && <ConfirmDialog topUp={open.row} onClose={close} onDone={decided} />}
			{open?.act === "reject" && (
				<DecisionDialog
					title={t("Reject the top-up")}
					about={<TopUpFacts topUp={open.row} />}
					act={t("Reject")}
					danger
					reason={{ description: t("Shown to the customer and kept in the audit log") }}
					onClose={close}
					run={async (reason) => {
						await operatorApi.rejectTopUp(open.row.id, reason);
						decided();
					}}
				/>
			)}
		</>
	);
}

function TopUpState({ topUp }: { topUp: TopUpWaiting }) {
	if (topUp.state === "pending" && topUp.firstLookBy !== null) {
		return <State value="pending" label={t("Second look")} />;
	}
	return <State value={topUp.state} />;
}

function ConfirmDialog({ topUp, onClose, onDone }: { topUp: TopUpWaiting; onClose: () => void; onDone: () => void }) {
	const [reference, setReference] = useState("");
	const [secondNeeded, setSecondNeeded] = useState(false);
	const confirm = useAction(async () => {
		const { secondLookNeeded } = await operatorApi.confirmTopUp(topUp.id, reference.trim());
		if (secondLookNeeded) setSecondNeeded(true);
		else onDone();
	});
	return (
		<Dialog onClose={secondNeeded ? onDone : onClose} title={t("Confirm the top-up")}>
			{secondNeeded ? (
				<DialogDone onClose={onDone}>
					<Notice kind="ok">
						{t("Your look is recorded. An amount of this size needs another operator, who confirms it as well.")}
					</Notice>
				</DialogDone>
			) : (
				<ActForm
					action={confirm}
					act={rich("Confirm {amount}", { amount: showUsd(topUp.amountNanoUsd) })}
					onCancel={onClose}
				>
					<TopUpFacts topUp={topUp} />
					{topUp.needsSecondLook && (
						<Notice>
							{topUp.firstLookBy === null
								? t("Two operators confirm an amount of this size. You are the first.")
								: t("{firstLookBy} looked first. Give the reference as you find it at the bank.", {
										firstLookBy: topUp.firstLookBy,
									})}
						</Notice>
					)}
					<TextField
						label={t("The bank's transaction reference")}
						description={t("As the statement has it. One transaction is credited once.")}
						minLength={3}
						maxLength={200}
						data-autofocus
						value={reference}
						onChange={setReference}
					/>
				</ActForm>
			)}
		</Dialog>
	);
}

function TopUpFacts({ topUp }: { topUp: TopUpWaiting }) {
	return (
		<Facts
			of={{
				[t("Account")]: `${isolated(topUp.accountName)} (${topUp.accountEmail})`,
				[t("Amount")]: <Amount nanoUsd={topUp.amountNanoUsd} />,
				[t("Reference")]: <Id value={topUp.reference} label={t("Copy the reference")} />,
			}}
		/>
	);
}
