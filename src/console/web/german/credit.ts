export const credit = {
	"Low-balance alert": "Warnung bei niedrigem Guthaben",
	"No alert is set. Requests are refused with 402 when the credit runs out.":
		"Keine Warnung ist eingerichtet. Ist das Guthaben aufgebraucht, werden Anfragen mit 402 abgewiesen.",
	"The owners get a mail when less than {threshold} is available.":
		"Die Inhaber erhalten eine E-Mail, sobald weniger als {threshold} verfügbar sind.",
	"Mail me below, in USD": "E-Mail unterhalb von, in USD",
	"Last sent {lastSent}": "Zuletzt gesendet {lastSent}",
	"Switch off": "Ausschalten",
	Closed: "Abgeschlossen",
	"Being closed": "Wird abgeschlossen",
	Running: "Läuft",
	"{month} as {kind}": "{month} als {kind}",
	Statements: "Auszüge",
	"No month yet.": "Noch kein Monat.",
	Month: "Monat",
	Files: "Dateien",
	"Months in UTC. Each is closed within hours of its end and never changes then. Your company, address and VAT ID are in the <link>settings</link>.":
		"Monate in UTC. Jeder wird binnen Stunden nach seinem Ende abgeschlossen und ändert sich danach nie. Unternehmen, Anschrift und USt-IdNr. stehen in den <link>Einstellungen</link>.",
	"A top-up is at least {least}.": "Eine Aufladung beträgt mindestens {least}.",
	"A top-up is at most {most}.": "Eine Aufladung beträgt höchstens {most}.",
	"Recorded as pending. Now make the transfer:": "Als ausstehend gespeichert. Überweisen Sie jetzt:",
	Amount: "Betrag",
	Reference: "Verwendungszweck",
	"Copy the reference": "Verwendungszweck kopieren",
	"Give exactly this reference, so that the payment can be found. An operator checks that it has arrived and confirms it with the bank's transaction reference; the credit then appears on this page by itself, with a receipt.":
		"Geben Sie genau diesen Verwendungszweck an, damit die Zahlung zugeordnet werden kann. Der Betreiber prüft den Eingang und bestätigt ihn mit der Buchungsreferenz der Bank; danach erscheint das Guthaben von selbst auf dieser Seite, mit einem Beleg.",
	"Make another": "Weitere Aufladung",
	"Common amounts": "Gängige Beträge",
	"Amount in USD": "Betrag in USD",
	"From {topUpMin} to {topUpMax} at a time": "Von {topUpMin} bis {topUpMax} auf einmal",
	Method: "Zahlungsart",
	"You pay on Stripe's page. The credit appears when Stripe has confirmed the payment.":
		"Sie bezahlen auf der Seite von Stripe. Das Guthaben erscheint, sobald Stripe die Zahlung bestätigt hat.",
	"You get a reference for the transfer. The credit appears when an operator has seen the payment.":
		"Sie erhalten einen Verwendungszweck für die Überweisung. Das Guthaben erscheint, sobald der Betreiber die Zahlung gesehen hat.",
	"Pay by card": "Mit Karte bezahlen",
	"Get the reference": "Verwendungszweck anfordern",
	"The operator of the service sends you the details of the bank account.":
		"Die Bankverbindung erhalten Sie vom Betreiber des Dienstes.",
	"Bank details": "Bankverbindung",
	"Copy the bank details": "Bankverbindung kopieren",
	Ledger: "Kontobewegungen",
	"No movements yet.": "Noch keine Bewegungen.",
	"Each top-up, refund and day of usage will be a line here.":
		"Jede Aufladung, jede Erstattung und jeder Tag Verbrauch wird hier eine Zeile sein.",
	Note: "Hinweis",
	"{count} requests": { one: "{count} Anfrage", other: "{count} Anfragen" },
	Balance: "Saldo",
	"What is held?": "Was ist reserviert?",
	"available and held": "verfügbar und reserviert",
	"Spent in all": "Insgesamt ausgegeben",
	"A running request holds the most that it can cost. When it ends it is charged what it used and the rest is free again.":
		"Eine laufende Anfrage reserviert, was sie höchstens kosten kann. Endet sie, wird ihr tatsächlicher Verbrauch berechnet, und der Rest ist wieder frei.",
	"{heldByAbsentInstances} is held for an instance of the service that is not running. It comes back when that instance's books are read.":
		"{heldByAbsentInstances} sind für eine Instanz des Dienstes reserviert, die nicht läuft. Der Betrag kommt zurück, sobald die Bücher dieser Instanz gelesen sind.",
	"Running requests": "Laufende Anfragen",
	"No request is running.": "Keine Anfrage läuft.",
	"No top-ups yet.": "Noch keine Aufladungen.",
	"A top-up and its verification can be followed here.":
		"Hier lässt sich eine Aufladung bis zu ihrer Bestätigung verfolgen.",
	Made: "Angelegt",
	"Pending verification": "Wartet auf Bestätigung",
	Receipt: "Beleg",
	"The payment is verified: {amount} is in your credit.":
		"Die Zahlung ist bestätigt: {amount} sind Ihrem Guthaben gutgeschrieben.",
	"The payment was not made. No credit was given.": "Die Zahlung ist nicht erfolgt. Es wurde nichts gutgeschrieben.",
	"The payment is {state}.": "Die Zahlung ist {state}.",
	"The payment was made. The credit appears here as soon as it is verified, usually within a minute.":
		"Die Zahlung ist erfolgt. Das Guthaben erscheint hier, sobald sie bestätigt ist, meist innerhalb einer Minute.",
	"The payment was not made. Nothing was charged.": "Die Zahlung ist nicht erfolgt. Es wurde nichts abgebucht.",
} as const;
