import { NotFoundPage } from "../pages/refused-pages.tsx";
import { AccountPage, AccountsPage } from "./account.tsx";
import { AuditPage } from "./audit.tsx";
import { DeploymentsPage, InstancesPage } from "./deployments.tsx";
import { ManagementKeysPage } from "./management-keys.tsx";
import { ReconciliationPage } from "./reconciliation.tsx";
import { RevenuePage } from "./revenue.tsx";
import { TopUpsPage } from "./top-ups.tsx";

const PAGES: ReadonlyMap<string, () => React.ReactNode> = new Map([
	["", RevenuePage],
	["top-ups", TopUpsPage],
	["accounts", AccountsPage],
	["deployments", DeploymentsPage],
	["instances", InstancesPage],
	["reconciliation", ReconciliationPage],
	["management-keys", ManagementKeysPage],
	["audit", AuditPage],
]);

export default function OperatorPages({ section, id }: { section: string; id: string }) {
	if (section === "accounts" && id !== "") return <AccountPage key={id} id={id} />;
	const Found = (id === "" && PAGES.get(section)) || NotFoundPage;
	return <Found />;
}
