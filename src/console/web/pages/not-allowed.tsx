import { RIGHTS, type Right, ROLE_LABELS } from "../../members/roles.ts";
import { Page, Panel } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { useAccount } from "../session.tsx";

export function NotAllowedPage({ right }: { right: Right }) {
	const account = useAccount();
	return (
		<Page title="Not for your role">
			<Panel>
				<Empty title={`Your role in ${account.name} is ${ROLE_LABELS[account.role]}.`}>
					It may not {RIGHTS[right].says}. An owner or admin of the account can give you another role.
				</Empty>
			</Panel>
		</Page>
	);
}
