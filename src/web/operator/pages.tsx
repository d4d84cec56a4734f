import { NotFoundPage } from "../pages/refused-pages.tsx";
import { AccountPage } from "./account.tsx";
import { AccountsPage } from "./accounts.tsx";
import { AuditPage } from "./audit.tsx";
import { DeploymentsPage } from "./deployments.tsx";
import { InstancesPage } from "./instances.tsx";
import { ManagementKeysPage } from "./management-keys.tsx";
import { ReconciliationPage } from "./reconciliation.tsx";
import { TodayPage } from "./today.tsx";
import { TopUpsPage } from "./top-ups.tsx";

/** The operators' pages, in one chunk that a customer never loads. */
export default function OperatorPages({ section, id }: { section: string; id: string }) {
	if (section === "accounts" && id !== "") return <AccountPage key={id} id={id} />;
	if (id !== "") return <NotFoundPage />;
	switch (section) {
		case "":
			return <TodayPage />;
		case "top-ups":
			return <TopUpsPage />;
		case "accounts":
			return <AccountsPage />;
		case "deployments":
			return <DeploymentsPage />;
		case "instances":
			return <InstancesPage />;
		case "reconciliation":
			return <ReconciliationPage />;
		case "management-keys":
			return <ManagementKeysPage />;
		case "audit":
			return <AuditPage />;
		default:
			return <NotFoundPage />;
	}
}
