import { Button, Modal, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { useState } from "react";
import type { ApiError } from "../http.ts";
import { TOP_UP_METHODS } from "../labels.ts";
import { Facts, State } from "../parts/page.tsx";
import { Empty, Notice, Problem } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Ago, Amount, Id } from "../parts/text.tsx";
import { useAction } from "../resource.ts";
import { Link } from "../router.tsx";
import { showUsd } from "../shown-money.ts";
import { operatorApi } from "./api.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import type { TopUpWaiting } from "./views.ts";

/** Top-ups with what an operator does to them. */
export function WaitingTable(props: {
	rows: readonly TopUpWaiting[] | undefined;
	onDecided: () => void;
	error?: ApiError | undefined;
	more?: Parameters<typeof DataTable<TopUpWaiting>>[0]["more"];
	empty?: ReactNode;
}) {
	const [open, setOpen] = useState<{ topUp: TopUpWaiting; act: "confirm" | "reject" }>();
	const close = () => setOpen(undefined);
	const decided = () => {
		close();
		props.onDecided();
	};
	return (
		<>
			<DataTable
				label="Top-ups"
				rows={props.rows}
				rowKey={(topUp) => topUp.id}
				error={props.error}
				retry={props.onDecided}
				{...(props.more ? { more: props.more } : {})}
				skeletonRows={3}
				empty={
					props.empty ?? <Empty title="No top-up waits.">A bank transfer that a customer announces appears here.</Empty>
				}
				columns={[
					{
						label: "Reference",
						lead: true,
						render: (topUp) => <Id value={topUp.reference} label="Copy the reference" />,
					},
					{
						label: "Account",
						render: (topUp) => <Link to={`/operator/accounts/${topUp.accountId}`}>{topUp.accountEmail}</Link>,
					},
					{ label: "Method", render: (topUp) => TOP_UP_METHODS[topUp.method] ?? topUp.method },
					{ label: "Waiting", render: (topUp) => <Ago atMs={topUp.createdAtMs} /> },
					{ label: "State", render: (topUp) => <TopUpState topUp={topUp} /> },
					{ label: "Amount", amount: (topUp) => topUp.amountNanoUsd, corner: true },
					{
						label: "Action",
						act: true,
						right: true,
						render: (topUp) =>
							topUp.state === "pending" && topUp.method === "transfer" ? (
								<span className="actions">
									<Button size="compact-xs" onClick={() => setOpen({ topUp, act: "confirm" })}>
										Confirm
									</Button>
									<Button size="compact-xs" variant="default" onClick={() => setOpen({ topUp, act: "reject" })}>
										Reject
									</Button>
								</span>
							) : null,
					},
				]}
			/>
			{open?.act === "confirm" && <ConfirmDialog topUp={open.topUp} onClose={close} onDone={decided} />}
			{open?.act === "reject" && (
				<DecisionDialog
					title="Reject the top-up"
					about={<TopUpFacts topUp={open.topUp} />}
					act="Reject"
					danger
					reason={{ description: "Shown to the customer and kept in the audit log" }}
					onClose={close}
					run={async (reason) => {
						await operatorApi.rejectTopUp(open.topUp.id, reason);
						decided();
					}}
				/>
			)}
		</>
	);
}

function TopUpState({ topUp }: { topUp: TopUpWaiting }) {
	if (topUp.state === "pending" && topUp.firstLookBy !== null) {
		return <State value="pending" label="Second look" />;
	}
	return (
		<State
			value={topUp.state}
			label={topUp.state === "pending" ? "Pending" : topUp.state[0]?.toUpperCase() + topUp.state.slice(1)}
		/>
	);
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
		<Modal
			opened
			onClose={secondNeeded ? onDone : onClose}
			title="Confirm the top-up"
			closeButtonProps={{ "aria-label": "Close" }}
		>
			{secondNeeded ? (
				<div className="stack">
					<Notice kind="ok">
						Your look is recorded. An amount of this size needs another operator, who confirms it as well.
					</Notice>
					<div className="form-end">
						<Button onClick={onDone}>Done</Button>
					</div>
				</div>
			) : (
				<form
					className="form"
					onSubmit={(event) => {
						event.preventDefault();
						void confirm.run();
					}}
				>
					<TopUpFacts topUp={topUp} />
					{topUp.needsSecondLook && (
						<Notice>
							{topUp.firstLookBy === null
								? "Two operators confirm an amount of this size. You are the first."
								: `${topUp.firstLookBy} looked first. Give the reference as you find it at the bank.`}
						</Notice>
					)}
					<TextInput
						label="The bank's transaction reference"
						description="As the statement has it. One transaction is credited once."
						required
						withAsterisk={false}
						minLength={3}
						maxLength={200}
						data-autofocus
						value={reference}
						onChange={(event) => setReference(event.currentTarget.value)}
					/>
					{confirm.error && <Problem error={confirm.error} />}
					<div className="form-end">
						<Button variant="default" onClick={onClose}>
							Cancel
						</Button>
						<Button type="submit" loading={confirm.busy}>
							Confirm {showUsd(topUp.amountNanoUsd)}
						</Button>
					</div>
				</form>
			)}
		</Modal>
	);
}

function TopUpFacts({ topUp }: { topUp: TopUpWaiting }) {
	return (
		<Facts
			items={[
				["Account", `${topUp.accountName} (${topUp.accountEmail})`],
				["Amount", <Amount key="amount" nanoUsd={topUp.amountNanoUsd} />],
				["Reference", <Id key="reference" value={topUp.reference} label="Copy the reference" />],
			]}
		/>
	);
}
