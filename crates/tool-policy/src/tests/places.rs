//! Options that lead a call to other places than its rule names: another project, namespace or host.

use super::*;

/// The same verbs change another project there, or each one.
#[test]
fn no_star_in_a_name_leads_to_another_project() {
    let options = ["-w web", "--workspace=web", "--workspace web", "--workspaces", "--include-workspace-root"];
    for (rule, call) in [
        ("npm exec acme-*", "npm exec acme-x"),
        ("npm init acme-*", "npm init acme-x"),
        ("npm version pat*", "npm version patch"),
        ("npm pkg set name=*", "npm pkg set name=x"),
        ("npm pkg delete scripts.*", "npm pkg delete scripts.x"),
        ("npm run build-*", "npm run build-x"),
        ("npm test*", "npm test"),
        ("npm unpublish acme-*", "npm unpublish acme-x"),
        ("npm publish acme-*", "npm publish acme-x"),
    ] {
        let calls = options.map(|option| format!("{call} {option}"));
        families(&[(rule, &[call], &calls.each_ref().map(String::as_str))]);
    }
    families(&[
        (
            "pnpm publish acme-*",
            &["pnpm publish acme-x"],
            &["pnpm publish acme-x --recursive", "pnpm publish --recursive acme-x", "pnpm publish acme-x -r"],
        ),
        ("npm version *", &["npm version patch -w web"], &[]),
        ("npm view acme-*", &["npm view acme-x -w web"], &[]),
        ("npm run build *", &["npm run build -w web"], &[]),
    ]);
}

#[test]
fn no_star_of_kubectl_changes_something_in_another_namespace() {
    for kubectl in ["kubectl", "oc", "sudo kubectl"] {
        for (rule, call) in [
            ("delete pod web-*", "delete pod web-1"),
            ("rollout restart deploy web-*", "rollout restart deploy web-1"),
            ("rollout undo deploy web-*", "rollout undo deploy web-1"),
            ("edit deploy web-*", "edit deploy web-1"),
            ("label pod web-*", "label pod web-1"),
            ("drain node-*", "drain node-1"),
            ("cordon node-*", "cordon node-1"),
            ("annotate pod web-*", "annotate pod web-1"),
            ("apply -f k8s/*", "apply -f k8s/a"),
        ] {
            let call = format!("{kubectl} {call}");
            families(&[(
                &format!("{kubectl} {rule}"),
                &[&call],
                &[
                    &format!("{call} -n prod"),
                    &format!("{call} --namespace=prod"),
                    &format!("{call} --namespace prod"),
                    &call.replacen("kubectl ", "kubectl --namespace prod ", 1).replacen("oc ", "oc -n prod ", 1),
                ],
            )]);
        }
        families(&[
            (&format!("{kubectl} get pod web-*"), &[&format!("{kubectl} get pod web-1 -n prod")], &[]),
            (&format!("{kubectl} logs web-*"), &[&format!("{kubectl} logs web-1 -n prod")], &[]),
            (&format!("{kubectl} delete *"), &[&format!("{kubectl} delete pod web-1 -n prod")], &[]),
        ]);
    }
    families(&[
        (
            "oc delete pod web-*",
            &["oc delete pod web-1"],
            &["oc delete pod web-1 --all", "oc delete pod web-1 db", "oc delete pod web-1 --context=x"],
        ),
        ("k3s kubectl delete pod web-*", &["k3s kubectl delete pod web-1"], &["k3s kubectl delete pod web-1 -n prod"]),
        (
            "helm uninstall web-*",
            &["helm uninstall web-1", "helm uninstall web-1 --wait"],
            &["helm uninstall web-1 -n prod", "helm uninstall web-1 --namespace=prod", "helm uninstall web-1 db"],
        ),
        ("helm status web-*", &["helm status web-1 -n prod"], &["helm status web-1 --kube-context=x"]),
        ("helm list *", &["helm list -A", "helm list -n prod"], &["helm list --kubeconfig=x"]),
        (
            "helm upgrade web acme/x *",
            &["helm upgrade web acme/x --atomic", "helm upgrade web acme/x --install --set a=b"],
            &["helm upgrade web acme/x --post-renderer=x", "helm upgrade web acme/x --repo=https://evil"],
        ),
        (
            "helm upgrade web-* acme/x",
            &["helm upgrade web-1 acme/x"],
            &["helm upgrade web-1 acme/x -f x", "helm upgrade web-1 acme/x -n prod"],
        ),
        (
            "helm upgrade *",
            &["helm upgrade web acme/x -n prod --install -f values.yaml"],
            &["helm upgrade web --kubeconfig=x"],
        ),
        (
            "kubectl rollout status deploy/web-*",
            &["kubectl rollout status deploy/web-1 -n prod"],
            &["kubectl rollout status deploy/web-1 --context=x"],
        ),
        ("docker compose ps web-*", &["docker compose ps web-1 web-2"], &["docker compose ps web-1 db"]),
    ]);
}

#[test]
fn no_star_in_an_address_names_a_further_host() {
    families(&[
        (
            "mongosh mongodb://db/*",
            &["mongosh mongodb://db/app", "mongosh mongodb://db/app-1"],
            &["mongosh mongodb://db/app?proxyHost=evil", "mongosh mongodb://db/@evil/app"],
        ),
        ("smbclient -L srv-*", &["smbclient -L srv-1", "smbclient -L srv-1 -N"], &["smbclient -L srv-1 evil"]),
    ]);
}

#[test]
fn a_star_in_a_host_leaves_open_what_it_is_asked() {
    families(&[
        (
            "nmap web-*",
            &[
                "nmap web-1 -p80",
                "nmap web-1 -p1-65535",
                "nmap web-1 -p-",
                "nmap web-1 -p 80",
                "nmap web-1 -O",
                "nmap web-1 -vvv",
            ],
            &[
                "nmap web-1 -p80 evil",
                "nmap web-1 -proxies=http://evil",
                "nmap web-1 -privileged",
                "nmap web-1 -p80 -iL x",
            ],
        ),
        (
            "dig web-*",
            &[
                "dig web-1 -t any",
                "dig web-1 -tMX",
                "dig web-1 -4",
                "dig web-1 CH",
                "dig web-1 AXFR",
                "dig web-1 TYPE65",
                "dig web-1 +subnet=1.2.3.4/24",
            ],
            &[
                "dig web-1 -t evil",
                "dig web-1 typex",
                "dig web-1 +subnet=evil",
                "dig web-1 -tevil",
                "dig web-1 -t any evil",
                "dig web-1 -x 1.2.3.4",
                "dig web-1 @evil",
            ],
        ),
        (
            "ssh-keyscan web-*",
            &["ssh-keyscan web-1 -t rsa", "ssh-keyscan web-1 -p 22"],
            &["ssh-keyscan web-1 -t rsa evil", "ssh-keyscan web-1 rsa", "ssh-keyscan web-1 -f x"],
        ),
        (
            "mtr web-*",
            &["mtr web-1 -r", "mtr web-1 --report"],
            &["mtr web-1 -r evil", "mtr web-1 -F x", "mtr web-1 evil"],
        ),
    ]);
}
