import { Skeleton } from "@mantine/core";
import type { ReactNode } from "react";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { t } from "../texts.tsx";
import type { Balance } from "../views.ts";
import { Stat } from "./page.tsx";
import { Amount } from "./text.tsx";

/** Shows `children` below the held amount. */
export function BalanceFigures({ balance, children }: { balance: Balance | undefined; children?: ReactNode }) {
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
				{t("available and held")}
			</Stat>
			<Stat label={t("Total spent")} value={value(({ spentNanoUsd }) => spentNanoUsd)} />
		</div>
	);
}
