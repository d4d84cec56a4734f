import { Facts } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Ago, Amount } from "../parts/text.tsx";
import { Link } from "../router.tsx";
import { showUsd } from "../shown-money.ts";
import { t } from "../texts.tsx";
import { type AdjustmentWaiting, operatorApi } from "./api.ts";
import { DecisionButtons, DecisionDialog, useDecision } from "./decision.tsx";

/** Credit adjustments that another operator must confirm or reject. */
export function AdjustmentTable(props: { rows: readonly AdjustmentWaiting[]; onDecided: () => void }) {
	const { open, ask, close, decided } = useDecision<AdjustmentWaiting>(props.onDecided);
	return (
		<>
			<DataTable
				label={t("Adjustments")}
				rows={props.rows}
				rowKey={(row) => row.id}
				empty={<Empty title={t("No adjustment waits.")} />}
				columns={[
					{
						label: t("Account"),
						lead: true,
						render: (row) => <Link to={`/operator/accounts/${row.accountId}`}>{row.accountEmail}</Link>,
					},
					{ label: t("Reason"), render: (row) => row.reason },
					{ label: t("Asked for by"), render: (row) => row.firstBy },
					{ label: t("Waiting"), render: (row) => <Ago atMs={row.firstAtMs} /> },
					{ label: t("Amount"), amount: (row) => row.amountNanoUsd, sign: true, corner: true },
					{
						label: t("Action"),
						act: true,
						right: true,
						render: (row) => <DecisionButtons onChoose={(act) => ask(row, act)} />,
					},
				]}
			/>
			{open && (
				<DecisionDialog
					title={open.act === "confirm" ? t("Confirm the adjustment") : t("Reject the adjustment")}
					about={
						<Facts
							of={{
								[t("Account")]: open.row.accountEmail,
								[t("Amount")]: <Amount nanoUsd={open.row.amountNanoUsd} />,
								[t("Reason")]: open.row.reason,
								[t("Asked for by")]: open.row.firstBy,
							}}
						/>
					}
					act={open.act === "confirm" ? t("Book {amount}", { amount: showUsd(open.row.amountNanoUsd) }) : t("Reject")}
					{...(open.act === "reject" && { danger: true, reason: { description: t("Kept in the audit log") } })}
					onClose={close}
					run={async (reason) => {
						await (open.act === "confirm"
							? operatorApi.confirmAdjustment(open.row.id)
							: operatorApi.rejectAdjustment(open.row.id, reason));
						decided();
					}}
				/>
			)}
		</>
	);
}
