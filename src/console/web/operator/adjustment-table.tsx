import { Button, Modal, TextInput } from "@mantine/core";
import { useState } from "react";
import { showUsd } from "../../../money/shown-usd.ts";
import { Facts } from "../parts/page.tsx";
import { Empty, Problem } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Ago, Amount } from "../parts/text.tsx";
import { useAction } from "../resource.ts";
import { Link } from "../router.tsx";
import { operatorApi } from "./api.ts";
import type { AdjustmentWaiting } from "./views.ts";

/** Adjustments that one operator asked for, with what another does about them. */
export function AdjustmentTable(props: { rows: readonly AdjustmentWaiting[]; onDecided: () => void }) {
	const [open, setOpen] = useState<{ row: AdjustmentWaiting; act: "confirm" | "reject" }>();
	const close = () => setOpen(undefined);
	const decided = () => {
		close();
		props.onDecided();
	};
	return (
		<>
			<DataTable
				label="Adjustments"
				rows={props.rows}
				rowKey={(row) => row.id}
				empty={<Empty title="No adjustment waits." />}
				columns={[
					{
						label: "Account",
						lead: true,
						render: (row) => <Link to={`/operator/accounts/${row.accountId}`}>{row.accountEmail}</Link>,
					},
					{ label: "Reason", render: (row) => row.reason },
					{ label: "Asked for by", render: (row) => row.firstBy },
					{ label: "Waiting", render: (row) => <Ago atMs={row.firstAtMs} /> },
					{ label: "Amount", amount: (row) => row.amountNanoUsd, sign: true, corner: true },
					{
						label: "Action",
						act: true,
						right: true,
						render: (row) => (
							<span className="actions">
								<Button size="compact-xs" onClick={() => setOpen({ row, act: "confirm" })}>
									Confirm
								</Button>
								<Button size="compact-xs" variant="default" onClick={() => setOpen({ row, act: "reject" })}>
									Reject
								</Button>
							</span>
						),
					},
				]}
			/>
			{open && <DecisionDialog row={open.row} act={open.act} onClose={close} onDone={decided} />}
		</>
	);
}

function DecisionDialog(props: {
	row: AdjustmentWaiting;
	act: "confirm" | "reject";
	onClose: () => void;
	onDone: () => void;
}) {
	const { row, act } = props;
	const [reason, setReason] = useState("");
	const decide = useAction(async () => {
		if (act === "confirm") await operatorApi.confirmAdjustment(row.id);
		else await operatorApi.rejectAdjustment(row.id, reason.trim());
		props.onDone();
	});
	return (
		<Modal
			opened
			onClose={props.onClose}
			title={act === "confirm" ? "Confirm the adjustment" : "Reject the adjustment"}
			closeButtonProps={{ "aria-label": "Close" }}
		>
			<form
				className="form"
				onSubmit={(event) => {
					event.preventDefault();
					void decide.run();
				}}
			>
				<Facts
					items={[
						["Account", row.accountEmail],
						["Amount", <Amount key="amount" nanoUsd={row.amountNanoUsd} />],
						["Reason", row.reason],
						["Asked for by", row.firstBy],
					]}
				/>
				{act === "reject" && (
					<TextInput
						label="Reason"
						description="Kept in the audit log"
						required
						withAsterisk={false}
						data-autofocus
						value={reason}
						onChange={(event) => setReason(event.currentTarget.value)}
					/>
				)}
				{decide.error && <Problem error={decide.error} />}
				<div className="form-end">
					<Button variant="default" onClick={props.onClose}>
						Cancel
					</Button>
					<Button type="submit" className={act === "reject" ? "danger-filled" : undefined} loading={decide.busy}>
						{act === "confirm" ? `Book ${showUsd(row.amountNanoUsd)}` : "Reject"}
					</Button>
				</div>
			</form>
		</Modal>
	);
}
