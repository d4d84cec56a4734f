import { Skeleton } from "@mantine/core";
import type { ReactNode } from "react";
import { addUsd, type NanoUsd, ZERO_USD } from "../../money/nano-usd.ts";
import { rich, t } from "../texts.tsx";
import type { Balance, CreditView } from "../views.ts";
import { Stat } from "./page.tsx";
import { Amount, Day } from "./text.tsx";

/** Figures of a balance. `children` appear below the held amount. */
export function BalanceFigures(props: {
	balance: Balance | undefined;
	promotions: CreditView["promotions"] | undefined;
	children?: ReactNode;
}) {
	const { balance, promotions = [], children } = props;
	const [first] = promotions;
	const value = (pick: (balance: Balance) => NanoUsd) =>
		balance ? <Amount nanoUsd={pick(balance)} /> : <Skeleton height={24} width={90} mt={4} />;
	return (
		<div className="stats">
			<Stat label={t("Available")} value={value(({ availableNanoUsd }) => availableNanoUsd)}>
				{t("for new requests")}
			</Stat>
			<Stat label={t("Held")} value={value(({ heldNanoUsd }) => heldNanoUsd)}>
				{children}
			</Stat>
			<Stat label={t("Balance")} value={value(({ balanceNanoUsd }) => balanceNanoUsd)}>
				{t("available plus held")}
			</Stat>
			<Stat label={t("Total spent")} value={value(({ spentNanoUsd }) => spentNanoUsd)} />
			{first && (
				<Stat
					label={t("Promotional credit")}
					value={<Amount nanoUsd={promotions.reduce((sum, one) => addUsd(sum, one.leftNanoUsd), ZERO_USD)} />}
				>
					{first.lastDay === null
						? t("included in the balance, spent first")
						: rich("included in the balance, spent first; {amount} expires after {day}", {
								amount: <Amount nanoUsd={first.leftNanoUsd} />,
								day: <Day atMs={Date.parse(first.lastDay)} />,
							})}
				</Stat>
			)}
		</div>
	);
}
