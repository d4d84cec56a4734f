import { Button } from "@mantine/core";
import { useState } from "react";
import { Empty } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Ago, Id } from "../parts/text.tsx";
import { Link } from "../router.tsx";
import { operatorApi } from "./api.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import type { PaymentFinding } from "./views.ts";

const KINDS: Readonly<Record<PaymentFinding["kind"], string>> = {
	uncredited: "Paid, not credited",
	unpaid: "Credited, not paid",
	refund: "Refunds differ",
	dispute: "Disputes differ",
	unfinished: "Not compared",
};

/** Money that Stripe and the books do not agree about, each until somebody has dealt with it. */
export function FindingTable({ rows, onClosed }: { rows: readonly PaymentFinding[]; onClosed: () => void }) {
	const [open, setOpen] = useState<PaymentFinding>();
	return (
		<>
			<DataTable
				label="Card payments that do not agree with the books"
				rows={rows}
				rowKey={(finding) => finding.id}
				empty={<Empty title="All payments agree." />}
				columns={[
					{ label: "Payment", lead: true, render: (finding) => <Id value={finding.id.replace(/^\w+:/, "")} /> },
					{ label: "What", render: (finding) => KINDS[finding.kind] },
					{ label: "Why", render: (finding) => finding.reason },
					{
						label: "Account",
						render: ({ accountId }) =>
							accountId === null ? "–" : <Link to={`/operator/accounts/${accountId}`}>{accountId}</Link>,
					},
					{ label: "Since", render: (finding) => <Ago atMs={finding.foundAtMs} /> },
					{ label: "Amount", right: true, render: (finding) => <span className="num">{amountOf(finding)}</span> },
					{
						label: "Action",
						act: true,
						right: true,
						render: (finding) => (
							<Button size="compact-xs" variant="default" onClick={() => setOpen(finding)}>
								Dealt with
							</Button>
						),
					},
				]}
			/>
			{open && (
				<DecisionDialog
					title="Dealt with by hand"
					about={<p className="small dim">{open.reason}</p>}
					act="Close"
					reason={{
						label: "What was done",
						description: "A refund at Stripe, an adjustment of the account. Kept in the audit log",
					}}
					onClose={() => setOpen(undefined)}
					run={async (reason) => {
						await operatorApi.closeFinding(open.id, reason);
						setOpen(undefined);
						onClosed();
					}}
				/>
			)}
		</>
	);
}

/** As Stripe has it: the currency may be any. */
function amountOf({ amountCents, currency }: PaymentFinding): string {
	if (amountCents === null) return "–";
	return `${(amountCents / 100).toFixed(2)} ${(currency ?? "").toUpperCase()}`;
}
