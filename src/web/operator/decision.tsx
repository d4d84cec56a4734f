import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { t } from "../texts.tsx";

type Act = "confirm" | "reject";

/** Which row of a table an operator is about to decide, and how. `onDecided`: once he has. */
export function useDecision<Row>(onDecided: () => void) {
	const [open, setOpen] = useState<{ row: Row; act: Act }>();
	const close = () => setOpen(undefined);
	const decided = () => {
		close();
		onDecided();
	};
	return { open, ask: (row: Row, act: Act) => setOpen({ row, act }), close, decided };
}

/** The two ways, in a row of the table. */
export function DecisionButtons({ onChoose }: { onChoose: (act: Act) => void }) {
	return (
		<Group gap={6} wrap="nowrap" justify="flex-end">
			<Button size="compact-xs" onClick={() => onChoose("confirm")}>
				{t("Confirm")}
			</Button>
			<Button size="compact-xs" variant="default" onClick={() => onChoose("reject")}>
				{t("Reject")}
			</Button>
		</Group>
	);
}
